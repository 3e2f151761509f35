#!/usr/bin/env python3
"""Follows the walk of docs/architecture-pages.md literally: writes its files, runs its commands, compares what they say; "..." stands for anything.

A code block whose first line names a file is written to it; "replacing NAME" puts it in the place of the entry NAME of that file.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "app"))
import harness

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: numpy is not installed (test.sh installs it)")
    sys.exit(harness.SKIPPED)

PAGE = os.path.join(harness.SOURCE, "docs", "architecture-pages.md")


def blocks():
    """(language, file, what it replaces, text) of the fenced blocks of the walk."""
    with open(PAGE, encoding="utf-8") as file:
        walk = re.search(r"^## A walk.*?^(?=## )", file.read(), re.MULTILINE | re.DOTALL)[0]
    found = re.findall(r"^```(\w+)(?: (\S+))?(?: replacing (\w+))?\n(.*?)^```$", walk, re.MULTILINE | re.DOTALL)
    assert len(found) == walk.count("```") // 2, "a block of the walk is not understood"
    return found


def write(folder, name, replaced, text):
    path = os.path.join(folder, name)
    if replaced:
        with open(path) as file:
            before = file.read()
        # An entry goes to the end of its line, or of its list.
        text, count = re.subn(rf"^{replaced} *= (?:\[\n.*?^\]\n|.*\n)", lambda _: text, before, flags=re.MULTILINE | re.DOTALL if text.count("[\n") else re.MULTILINE)
        assert count == 1, f"{name} has {count} entries {replaced}"
    harness.write(folder, name, text)


def same(expected, got):
    pattern = r".*".join(re.escape(" ".join(part.split())) for part in expected.split("..."))
    return re.fullmatch(pattern, " ".join(got.split()), re.DOTALL) is not None


def run(folder, command):
    path = os.pathsep.join([os.path.dirname(harness.PROGRAM), os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(command, cwd=folder, shell=True, executable="/bin/bash", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120, env=harness.environment(PATH=path))
    return done.stdout


def walk():
    commands, said = 0, ""
    with harness.scratch() as folder:
        for language, name, replaced, text in blocks():
            if language != "console":
                write(folder, name, replaced, text)
                continue
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, expected = part.split("\n", 1)
                got = run(folder, command)
                assert same(expected, got), f"$ {command}\nshown:\n{expected}\ngot:\n{got}"
                commands += 1
                if "compare" in command:
                    said = got
    far = float(re.search(r"at most (\S+) standard", said)[1])
    assert far <= 1e-5, f"the page of the walk computes something else: {said}"
    assert commands >= 6, "the walk has lost its commands"


harness.main([("the walk", walk)])
