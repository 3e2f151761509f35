#!/usr/bin/env python3
"""Follows the walk of docs/writing-a-plugin.md literally, with nothing but an installed tree: writes its files, runs its commands, and compares
what they say. "..." stands for anything; a number with a point may be a tenth away, since an order of floating-point sums may decide ties.

    plugin_page.py BUILD-OF-CMAKE
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packaging"))
from tree import Installed
import harness

with open(os.path.join(harness.SOURCE, "docs", "writing-a-plugin.md"), encoding="utf-8") as page:
    TEXT = page.read()
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
NUMBER = re.compile(r"(\d+\.\d+|\d{3,}) (us|ms|s)\b")


def blocks():
    walk = re.search(r"^## A walk.*?^(?=## )", TEXT, re.MULTILINE | re.DOTALL)[0]
    found = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", walk, re.MULTILINE | re.DOTALL)
    assert len(found) == walk.count("```") // 2, "a block of the walk is not understood"
    return found


def compare(command, expected, got):
    """Words equal, times near."""
    flat = " ".join(expected.split())
    at, pattern = 0, ""
    for found in re.finditer(r"\.\.\.|" + NUMBER.pattern, flat):
        pattern += re.escape(flat[at:found.start()]) + (r".*?" if found[0] == "..." else r"(\d+(?:\.\d+)? (?:us|ms|s))")
        at = found.end()
    pattern += re.escape(flat[at:])
    match = re.fullmatch(pattern, " ".join(got.split()), re.DOTALL)
    assert match, f"$ {command}\nshown:\n{expected}\ngot:\n{got}"
    shown = [seconds(m[0]) for m in NUMBER.finditer(flat)]
    for want, text in zip(shown, match.groups(), strict=True):
        assert abs(seconds(text) - want) <= 0.1 * want, f"$ {command}\nshows {want} s, got {text}\n{got}"


def seconds(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def run(folder, tree, command):
    path = os.pathsep.join([tree.path("bin"), os.environ["PATH"]])
    done = subprocess.run(command, cwd=folder, shell=True, executable="/bin/bash", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=200, env=harness.environment(PATH=path))
    return done.stdout


def mean_ttft(report):
    return seconds(re.search(r"^  ttft .*?(\S+ \w+)$", report, re.MULTILINE)[1])


def walk():
    commands, means = 0, {}
    with Installed() as tree, harness.scratch() as folder:
        for language, name, text in blocks():
            if language != "console":
                harness.write(folder, name, text)
                continue
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, expected = part.split("\n", 1)
                got = run(folder, tree, command)
                compare(command, expected, got)
                commands += 1
                if "simulate" in command and "  ttft" in got:
                    means.setdefault(got.split()[0], []).append(mean_ttft(got))
    assert commands >= 8, "the walk has lost its commands"
    # What the page claims: half the mean time to the first token.
    assert all(m < 0.6 * means["continuous"][0] for m in means["quick"]) and len(means["quick"]) == 2, means


def names_are_there():
    """What the page names of the headers is in the headers."""
    include = os.path.join(harness.SOURCE, "sdk", "include", "mekik")
    headers = "".join(open(os.path.join(include, name), encoding="utf-8").read() for name in os.listdir(include))
    for name in re.findall(r"`mekik::(?:\w+::)*(\w+)[`({<]", TEXT) + re.findall(r"`(MEKIK_\w+)`", TEXT):
        assert re.search(rf"\b{name}\b", headers) or name in ("MEKIK_PLUGIN_PATH", "reference_backend"), f"{name} is in no header"
    for name in re.findall(r"`([\w/]+\.(?:hpp|def|h))`", TEXT):
        places = [os.path.join(include, os.path.basename(name)), os.path.join(harness.SOURCE, "sdk", name)]
        assert any(map(os.path.exists, places)), f"there is no {name}"


harness.main([("names", names_are_there), ("the walk", walk)])
