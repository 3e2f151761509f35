#!/usr/bin/env python3
"""What the compiler does not check: who includes whom, the length of files, the format, and words that do not belong here.

Prints each fault as file:line: what, and exits with 1 if there is any.
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAX_LINES = 400
LAYERS = {  # core folder -> folders it may include (docs/design.md, section 11)
    "base": set(),
    "config": {"base"},
    "metrics": {"base"},
    "plugin": {"base", "config", "metrics"},
    "program": {"base", "config"},
    "weights": {"base", "config", "plugin", "program"},
    "text": {"base", "config"},
    "convert": {"base", "config", "plugin", "program", "weights", "text"},
    "sample": {"base", "config", "plugin", "metrics"},
    "engine": {"base", "config", "plugin", "metrics", "program", "weights", "text", "sample"},
    "server": {"base", "config", "plugin", "metrics", "text", "sample", "engine"},
    "simulate": {"base", "config", "plugin", "metrics", "program", "engine"},
    "bench": {"base", "config", "plugin", "metrics", "program", "sample", "engine"},
    "app": {"base", "config", "plugin", "metrics", "program", "weights", "text", "sample", "engine", "server", "convert", "simulate", "bench"},
}
ONLY_IN = [  # pattern of an include -> the one place of the core that may have it
    (r"toml\+\+/", "core/config"),
    (r"boost/dll", "core/plugin"),
    (r"boost/(asio|beast)", "core/server"),
    (r"boost/program_options", "core/app"),
    (r"boost/json|spdlog/", "core/base"),
]
FORBIDDEN_WORDS = [
    (re.compile(r"/(work|farm|root|home)/\w"), "names a folder of one machine"),
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "is unfinished"),
]
FAMILIES = re.compile(r"\b(llama|gemma|qwen|mistral|smollm|phi3|deepseek)\w*\b", re.IGNORECASE)


def tracked():
    try:
        out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
        return [f for f in out.stdout.splitlines() if os.path.exists(os.path.join(ROOT, f))]
    except (OSError, subprocess.CalledProcessError):
        return [os.path.relpath(os.path.join(d, f), ROOT) for d, _, fs in os.walk(ROOT) for f in fs if "/build/" not in d and "/.git/" not in d]


def includes(path, lines):
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match[1] == '"', match[2]


def check_includes(path, lines, report):
    parts = path.split("/")
    for number, own, target in includes(path, lines):
        head = target.split("/")[0]
        if parts[0] == "core":
            for pattern, place in ONLY_IN:
                if re.match(pattern, target) and not path.startswith(place + "/"):
                    report(path, number, f"{target} is included only in {place}")
            if own and head in LAYERS and head != parts[1] and head not in LAYERS[parts[1]]:
                report(path, number, f"core/{parts[1]} may not include core/{head}")
        if parts[0] in ("plugins", "backends") and (head in LAYERS or target.startswith("core/")):
            # A component's own headers lie in its folder; those that happen to be called like a folder of the core are told apart so.
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)) and not os.path.exists(os.path.join(ROOT, *parts[:2], target)):
                report(path, number, f"a plugin includes only the SDK and its own headers, not {target}")
        if parts[0] == "sdk" and own and head in LAYERS and not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)):
            report(path, number, f"the SDK does not include the core ({target})")


def main():
    faults = []

    def report(path, number, what):
        faults.append(f"{path}:{number}: {what}")

    sources = []
    for path in tracked():
        full = os.path.join(ROOT, path)
        try:
            text = open(full, encoding="utf-8").read()
        except (UnicodeDecodeError, IsADirectoryError):
            continue
        lines = text.splitlines()
        if path != "tests/lint/lint.py" and path != "LICENSE":
            for number, line in enumerate(lines, 1):
                for pattern, what in FORBIDDEN_WORDS:
                    if pattern.search(line):
                        report(path, number, f"{what}: {line.strip()[:80]}")
        if not path.endswith((".cpp", ".hpp", ".h", ".c")):
            continue
        sources.append(path)
        if len(lines) > MAX_LINES and not path.endswith("mekik/plugin.h"):
            report(path, len(lines), f"has {len(lines)} lines; files stay under {MAX_LINES}")
        check_includes(path, lines, report)
        if path.endswith((".hpp", ".h")) and "#pragma once" not in text and "#ifndef" not in text:
            report(path, 1, "lacks #pragma once")
        # Which model computes how is data: pages, and tables of names that files carry.
        if path.startswith(("core/program", "core/engine", "core/weights", "backends", "sdk")):
            for number, line in enumerate(lines, 1):
                code = line.split("//")[0]
                if FAMILIES.search(code) and "longrope" not in code:
                    report(path, number, f"names a model family: {line.strip()[:80]}")
    formatter = shutil.which("clang-format-14")
    if formatter:
        own = [s for s in sources if not s.endswith("mekik/plugin.h")]  # its tables are set by hand, frozen copies included
        for i in range(0, len(own), 100):
            out = subprocess.run([formatter, "--dry-run", "-Werror", *own[i : i + 100]], cwd=ROOT, capture_output=True, text=True)
            for line in out.stderr.splitlines():
                if "error:" in line:
                    faults.append(line.replace("error: code should be clang-formatted [-Wclang-format-violations]", "is not formatted (clang-format-14 -i)"))
    else:
        print("clang-format-14 is not installed: the format was not checked")
    print("\n".join(sorted(set(faults))))
    print(f"{len(sources)} sources, {len(set(faults))} faults")
    return 1 if faults else 0


sys.exit(main())
