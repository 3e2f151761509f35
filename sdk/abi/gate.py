#!/usr/bin/env python3
"""gate.py OLD NEW: may plugins that were built with the header of OLD be loaded by an engine that is built with that of NEW?

OLD and NEW are folders that hold mekik/plugin.h and mekik/ops.def. Exit code 0: yes, it is the same, or has grown at the end only.
1: an old plugin would break, or the new header breaks its own rules; each reason is printed. 2: it could not be judged.

    python3 sdk/abi/gate.py sdk/abi/v0.0 sdk/include

A probe library is made of each header: one exported function a table, an enum and a function type, so that libabigail (abidiff, Debian's
abigail-tools) reaches all of them; abidiff on plugins sees one symbol and a void pointer, and nothing behind it. What debug information does
not carry (macros, the rows of ops.def) is compared as text.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BREAKS = re.compile(r"data members? (change|deletion)|enumerators? (change|deletion)|[1-9][0-9]* Removed|return type changed|"
                    r"parameter \d+ of type .* (changed|was removed)")


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


def read(folder, name):
    with open(os.path.join(folder, "mekik", name), encoding="utf-8") as f:
        return f.read()


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def declared(header):
    """Names of tables, of enums and of function types."""
    text = without_comments(header)
    tables = re.findall(r"typedef struct (mekik_\w+) \{", text)
    enums = re.findall(r"\benum (mekik_\w+) \{", text)
    functions = re.findall(r"typedef [\w ]+\(\*(mekik_\w+)\)\(", text)
    return tables, enums, functions


def by_value(header):
    """Tables that are passed, returned or held by value somewhere, or lie in arrays without a stride: these cannot grow."""
    text = without_comments(header)
    return {name for name in declared(header)[0] if re.search(rf"\b{name} (?!\*)\w+\s*[;,)]", re.sub(rf"\}} {name};|extern [^;]*;", "", text))}


def macros(header):
    """Macros with a value, by name: ids, magic numbers, limits. Those with parameters are texts, too."""
    text = without_comments(header).replace("\\\n", " ")
    out = {}
    for name, value in re.findall(r"^#define (MEKIK_\w+(?:\([^)]*\))?)[ \t]+(.+?)\s*$", text, flags=re.M):
        out[name] = " ".join(value.split())
    return out


def operations(text):
    out = {}
    for code, rest in re.findall(r"^MEKIK_OP\((\d+), ((?:.|\n)*?)\"", text, flags=re.M):
        out[int(code)] = [part.strip() for part in rest.split(",")][:6]
    return out


def probe(folder, work, name):
    """The probe of one header as a shared library with debug information."""
    tables, enums, functions = declared(read(folder, "plugin.h"))
    lines = ["#include <mekik/plugin.h>"]
    for what in tables:
        lines.append(f"MEKIK_EXPORT void mekik_probe_{what}(const {what} *p); void mekik_probe_{what}(const {what} *p) {{ (void)p; }}")
    for what in enums:
        lines.append(f"MEKIK_EXPORT void mekik_probe_enum_{what}(enum {what} v); void mekik_probe_enum_{what}(enum {what} v) {{ (void)v; }}")
    for what in functions:
        lines.append(f"MEKIK_EXPORT void mekik_probe_fn_{what}({what} f); void mekik_probe_fn_{what}({what} f) {{ (void)f; }}")
    source, library = os.path.join(work, name + ".c"), os.path.join(work, name + ".so")
    with open(source, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    built = run("cc", "-std=c11", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-I" + folder, source, "-o", library)
    if built.returncode != 0:
        raise SystemExit(f"{folder}: the probe does not compile:\n{built.stderr}")
    return library


def own_rules(folder):
    """What is wrong with a header whatever was before it."""
    faults = []
    header = os.path.join(folder, "mekik", "plugin.h")
    for words in (["cc", "-std=c11", "-x", "c"], ["c++", "-std=c++20", "-x", "c++"]):
        padded = run(*words, "-Wpadded", "-Wall", "-Werror", "-fsyntax-only", header)
        if padded.returncode != 0:
            hole = [line for line in padded.stderr.splitlines() if "error:" in line]
            faults.append(f"{words[0]} says: {hole[0] if hole else padded.stderr.strip()[:200]}")
    text = without_comments(read(folder, "plugin.h"))
    for name, body in re.findall(r"typedef struct (mekik_\w+) \{(.*?)\}\s*\1;", text, flags=re.S):
        # A table of functions, or what travels alone and may grow, begins with its size (rule 1).
        if "(*" in body and not re.match(r"\s*uint32_t (magic, )?struct_size", body):
            if name not in ("mekik_component",):
                faults.append(f"{name}: holds functions and does not begin with struct_size")
    for enum, body in re.findall(r"\benum (mekik_\w+) \{(.*?)\}", text, flags=re.S):
        for value in filter(None, (part.strip() for part in body.split(","))):
            if "=" not in value:
                faults.append(f"enum {enum}: {value} has no written value")
    return faults


def compare_text(old, new):
    faults = []
    before, after = macros(read(old, "plugin.h")), macros(read(new, "plugin.h"))
    for name, value in before.items():
        if name in ("MEKIK_ABI_MINOR", "MEKIK_EXPORT"):
            continue
        if name not in after:
            faults.append(f"the macro {name} is gone")
        elif after[name] != value:
            faults.append(f"the macro {name} was {value} and is {after[name]}")
    before, after = operations(read(old, "ops.def")), operations(read(new, "ops.def"))
    for code, row in before.items():
        if code not in after:
            faults.append(f"ops.def: operation {code}, {row[0]}, is gone")
        elif after[code] != row:
            faults.append(f"ops.def: operation {code} was ({', '.join(row)}) and is ({', '.join(after[code])}); a new attribute is a new code")
    return faults


def compare_layout(old, new):
    """(reasons why old plugins break, whether anything changed)"""
    work = tempfile.mkdtemp()
    try:
        # Each type with its own changes only: a table that points to one that grew has not changed. No suppressions:
        # has_data_member_inserted_at = end would hide changed signatures, too.
        result = run("abidiff", "--leaf-changes-only", probe(old, work, "old"), probe(new, work, "new"))
        if result.returncode & 3:
            raise SystemExit("abidiff failed: " + result.stderr)
        report = result.stdout
    finally:
        shutil.rmtree(work)
    reasons = [line.strip() for line in report.splitlines() if BREAKS.search(line)]
    held = by_value(read(old, "plugin.h"))
    for name in re.findall(r"'struct (mekik_\w+) at [^']*' changed:", report):
        if name in held:
            reasons.append(f"{name} is passed or held by value, so it cannot change")
    return list(dict.fromkeys(reasons)), bool(report.strip()), report


def judge(old, new):
    faults = own_rules(new)
    if faults:
        return faults, True
    faults = compare_text(old, new)
    reasons, changed, _ = compare_layout(old, new)
    return faults + reasons, changed


def main(arguments):
    if len(arguments) != 2:
        print(__doc__)
        return 2
    if shutil.which("abidiff") is None:
        print("abidiff is not installed (Debian: abigail-tools)")
        return 2
    faults, changed = judge(*arguments)
    for fault in faults:
        print(fault)
    if not faults:
        print("grown at the end only" if changed else "the same")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
