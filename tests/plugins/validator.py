#!/usr/bin/env python3
"""The command line of mekik-validate: what it writes in each format, its exit codes, and that a seed repeats a run."""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

SOURCE = os.environ.get("MEKIK_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("MEKIK_BUILD") or os.path.join(SOURCE, "build", "release")
GOOD = os.path.join(BUILD, "lib", "mekik", "cache_none.so")
FAULTY = os.path.join(BUILD, "tests", "faulty", "scheduler", "scheduler_faulty.so")


def validate(*words, fault=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MEKIK_")}
    if fault:
        environment["MEKIK_FAULT"] = fault
    return subprocess.run([os.path.join(BUILD, "bin", "mekik-validate"), *words], capture_output=True, text=True, env=environment, timeout=300)


def check(what, condition, shown=""):
    if not condition:
        print(f"FAILED: {what}: {shown}")
        check.failed += 1


check.failed = 0


def formats():
    text = validate(GOOD)
    check("text", text.returncode == 0 and "passed  cache/none  behaviour.workout\n" in text.stdout and ", 0 failed, " in text.stdout, text.stdout + text.stderr)
    bad = validate("--only", "behaviour.workout", FAULTY, fault="writes_input")
    check("a fault", bad.returncode == 1 and "failed  scheduler/faulty  behaviour.workout\n        plan: wrote to `seqs`, which is not its own to change" in bad.stdout, bad.stdout)
    report = json.loads(validate("--json", "--only", "behaviour.workout", "--seed", "7", FAULTY, fault="writes_input").stdout)
    check("JSON", report["failed"] == 1 and report["seed"] == 7 and report["checks"][0]["component"] == "scheduler/faulty", report)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "report.xml")
        result = validate("--junit", "--output", out, "--only", "descriptor", FAULTY, fault="no_doc")
        suite = xml.parse(out).getroot().find("testsuite")
        check("JUnit", suite.get("failures") == "1" and suite.find("testcase/failure") is not None, xml.tostring(suite))
        check("the text beside a file", "no sentence" in result.stdout, result.stdout)


def seeds():
    runs = [json.loads(validate("--json", "--only", "behaviour.workout", "--seed", seed, FAULTY, fault="twice").stdout)["checks"][0]["faults"] for seed in ("5", "5")]
    check("a seed repeats a run", runs[0] == runs[1] and runs[0], runs)


def command_line():
    names = [line.split()[0] for line in validate("--list").stdout.splitlines()]
    check("--list", {"file.symbols", "behaviour.workout", "hostile.heap", "backend.operations"} <= set(names) and len(names) == len(set(names)), names)
    for words, said in ([], "A file is needed"), (["absent.so"], "there is no file absent.so"), (["--only", "nothing", GOOD], 'no check "nothing"'), \
            (["--seed", "x", GOOD], "--seed needs a number"), (["--against", "0.9", GOOD], "no revision 0.9"), (["--against", "1.0", GOOD], "revision of the ABI"), \
            (["--json", "--junit", GOOD], "exclude each other"), (["--component", "sink/x", GOOD], "has no component sink/x"), (["--nonsense", GOOD], "--nonsense is unknown"):
        result = validate(*words)
        check(f"{words} is refused", result.returncode == 2 and said in result.stderr, (result.returncode, result.stderr))
    check("--against", validate("--against", "0.0", "--only", "file", GOOD).returncode == 0)
    check("--help", "--reproduce" not in validate("--help").stdout and "--seed N" in validate("--help").stdout)
    for path, what in (__file__, "is not an ELF file"), (os.path.join(BUILD, "bin", "mekik-validate"), "mekik_plugin_v0"):
        result = validate(path)
        check(f"{path} is no plugin", result.returncode == 1 and what in result.stdout, result.stdout)


for group in (formats, seeds, command_line):
    group()
print(f"{check.failed} failed")
sys.exit(1 if check.failed else 0)
