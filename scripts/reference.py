#!/usr/bin/env python3
"""Writes the reference pages: docs/reference/abi.md from the header, docs/reference/options.md from what the program says of its options.

    reference.py MEKIK           writes both
    reference.py MEKIK --check   says where they are not what would be written, and exits with 1
"""
import difflib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADER = os.path.join(ROOT, "sdk", "include", "mekik", "plugin.h")
PAGES = os.path.join(ROOT, "docs", "reference")
TABLES = ["pipeline", "model", "backend", "scheduler", "cache", "sampler", "draft", "sink", "server", "plugins"]
FOLDERS = {"backend": "backends", "cache": "plugins/caches", "drafter": "plugins/drafters", "loader": "plugins/loaders",
           "sampler": "plugins/samplers", "scheduler": "plugins/schedulers", "scheme": "plugins/schemes", "sink": "plugins/sinks"}
NOTE = "<!-- Written by scripts/reference.py: change {}, not this page. -->\n"


# ---- the header --------------------------------------------------------------------------------------------------------------------

def plain(comment):
    """The text of a comment."""
    lines = [re.sub(r"^\s*(/\*+|\*(?!/))?\s?", "", line) for line in comment.replace("*/", "").splitlines()]
    return " ".join(" ".join(lines).split())


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").strip()


def pieces(text):
    """Comments and declarations of C at the outermost level, in order."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("/*", at):
            end = text.index("*/", at) + 2
            yield "comment", text[at:end]
            at = end
        elif text[at] == "#":
            end = at
            while True:  # continued lines, and comments that do
                end = text.index("\n", end + 1)
                line = text[at:end]
                if not line.endswith("\\") and line.count("/*") <= line.count("*/"):
                    break
            yield "macro", text[at:end]
            at = end
        else:
            depth, end = 0, at
            while depth > 0 or text[end] != ";":
                if text.startswith("/*", end):
                    end = text.index("*/", end) + 1
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            behind = re.match(r";[ \t]*/\*.*?\*/", text[end:], re.DOTALL)  # it belongs to what it stands behind
            end += behind.end() if behind else 1
            yield "declaration", text[at:end]
            at = end


def members(body):
    """(comment before, declaration, comment behind on its line) of the members of a struct."""
    before, out, at = "", [], 0
    while at < len(body):
        rest = body[at:]
        comment = re.match(r"\s*/\*.*?\*/", rest, re.DOTALL)
        if comment:
            behind = "\n" not in rest[:rest.index("/*")]
            if behind and out:
                out[-1] = (*out[-1][:2], (out[-1][2] + " " + plain(comment[0].strip())).strip())
            else:
                before = (before + " " + plain(comment[0].strip())).strip()
            at += comment.end()
            continue
        end = rest.find(";")
        if end < 0:
            break
        # A comment may stand in the middle of a declaration.
        out.append((before, " ".join(rest[:end].split()), ""))
        before = ""
        at += end + 1
    return out


def functions(name, body):
    rows, before = [], ""
    for said, declaration, behind in members(body):
        match = re.match(r"(.*?)\(\*(\w+)\)\s*\((.*)\)$", declaration)
        if not match:
            continue
        said = said or ("" if behind else before)  # two functions may share the comment above the first
        before = said
        tag = re.search(r"\[(load|engine|any)\]", behind) or re.search(r"\[(load|engine|any)\]", said)
        text = re.sub(r"\[(load|engine|any)\]\s*", "", f"{said} {behind}").strip()
        rows.append((match[2], tag[1] if tag else "", f"{match[1].strip()} ({match[3]})", text))
    for i in range(len(rows) - 1, 0, -1):  # two on a line share the tag behind them
        if not rows[i - 1][1]:
            rows[i - 1] = (rows[i - 1][0], rows[i][1], *rows[i - 1][2:])
    rows = [f"| `{function}` | {tag} | `{kind}` | {cell(text)} |" for function, tag, kind, text in rows]
    return ["", f"| function of `{name}` | thread | type | |", "|---|---|---|---|", *rows] if rows else []


def declared(kind, text, comments):
    """The lines of a page for one declaration, with the comments that stand before it."""
    out = [*(plain(c) + "\n" for c in comments), "```c", *text.rstrip().splitlines(), "```"]
    struct = re.match(r"typedef struct (\w+) \{(.*)\}", text[:text.rindex("}") + 1] if "}" in text else text, re.DOTALL)
    if kind == "declaration" and struct:
        out += functions(struct[1], struct[2])
    return out + [""]


def abi():
    text = open(HEADER, encoding="utf-8").read()
    head = text[:text.index("*/")]
    rules = "\n".join(re.sub(r"^ \* ?", "", line) for line in head.splitlines()[1:])
    body = text[text.index("#define MEKIK_ABI_MINOR"):text.rindex("#ifdef __cplusplus")]
    out = [NOTE.format("the header"), "# The binary contract: `mekik/plugin.h`\n", "[How plugins are written](../writing-a-plugin.md). Threads: `load`, "
           "`engine` and `any`, as below.\n", "```text", rules.rstrip(), "```\n", "## Versions and text\n"]
    comments = []
    for kind, piece in pieces(body):
        title = re.match(r"/\* -+ (.*?) -+ \*/", piece)
        if title:
            out.append(f"## {title[1][0].upper()}{title[1][1:]}\n")
        elif kind == "comment":
            comments.append(piece)
        elif not re.match(r"#(if|else|endif)", piece):
            out += declared(kind, piece, comments)
            comments = []
    return "\n".join(out).rstrip() + "\n"


# ---- the options -------------------------------------------------------------------------------------------------------------------

def ask(mekik, *words):
    return json.loads(subprocess.run([mekik, *words, "--json"], capture_output=True, text=True, check=True).stdout)


def number(value, kind):
    if kind == "duration":
        for unit, size in (("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6), ("us", 1e3)):
            if value >= size and value % size == 0:
                return f"{value / size:g}{unit}"
        return f"{value:g}ns"
    if kind == "size":
        for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value >= size and value % size == 0:
                return f"{value / size:g}{unit}"
    return f"{value:.12g}"


def limits(row):
    if row.get("choices"):
        return ", ".join(f"`{c}`" for c in row["choices"].split("|"))
    if row["type"] == "bool" or ("min" not in row and "max" not in row):
        return ""
    low, high = (number(row[k], row["type"]) if k in row else "" for k in ("min", "max"))
    what = "length " if row["type"] in ("text", "path") or row.get("list") else ""
    return f"{what}{low} to {high}"


def table(rows, prefix=""):
    out = []
    for row in rows:
        kind = row["type"] + (", list" if row.get("list") else "") + (", required" if row.get("required") else "")
        default = f"`{row['default']}`" if row.get("default") not in (None, "") else ""
        out.append(f"| `{prefix}{row['key']}` | {kind} | {default} | {limits(row)} | {cell(row['doc'])} |")
        out += table(row.get("fields", []), f"{prefix}{row['key']}.")
    return out


def section(title, summary, rows):
    head = ["| key | type | default | limits | |", "|---|---|---|---|---|"]
    return f"### {title}\n\n{summary}\n\n" + ("\n".join(head + table(rows)) if rows else "No options.") + "\n\n"


def sections(mekik):
    """By their titles: the tables of a pipeline, then every component that this program has and that is of this tree."""
    out = {}
    for name in TABLES:
        rows = next(t["core_options"] for t in ask(mekik, "describe", name) if t.get("table") == name)
        out[f"[{name}]"] = section(f"[{name}]", "Keys of the core.", rows)
    for c in ask(mekik, "plugins")["components"]:
        title = f"{c['kind']}/{c['name']}"
        if in_tree(title):
            rows = next(d["options"] for d in ask(mekik, "describe", title) if d.get("name") == c["name"])
            out[title] = section(title, c["summary"], rows)
    return out


def in_tree(title):
    kind, _, name = title.partition("/")
    return kind in FOLDERS and os.path.isdir(os.path.join(ROOT, FOLDERS[kind], name))


def options(mekik, before):
    """A component that this machine could not build keeps the section that it has."""
    found = sections(mekik)
    for text in re.findall(r"^### .*?(?=^### |\Z)", before, re.MULTILINE | re.DOTALL):
        title = text[4:text.index("\n")]
        if title not in found and in_tree(title):
            found[title] = text.rstrip() + "\n\n"
    order = sorted(found, key=lambda t: (not t.startswith("["), TABLES.index(t[1:-1]) if t.startswith("[") else t))
    intro = ("# Options: every key of a pipeline\n\nAs `mekik describe NAME` shows them. A component's own keys stand in its slot's table beside the "
             "core's: those of `scheduler/fair` in `[scheduler]`. A sampler's are fields of requests, too.\n\n")
    return NOTE.format("the option rows in the sources") + "\n" + intro + "".join(found[t] for t in order).rstrip() + "\n"


def main():
    mekik, check = os.path.abspath(sys.argv[1]), "--check" in sys.argv
    os.makedirs(PAGES, exist_ok=True)
    faults = 0
    for name in ("abi.md", "options.md"):
        path = os.path.join(PAGES, name)
        before = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        text = abi() if name == "abi.md" else options(mekik, before)
        if not check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        elif text != before:
            faults += 1
            print("\n".join(difflib.unified_diff(before.splitlines(), text.splitlines(), path, "as it would be written", lineterm="", n=1)))
    if faults:
        print("write them anew with: python3 scripts/reference.py build/release/bin/mekik")
    return 1 if faults else 0


sys.exit(main())
