#!/usr/bin/env python3
"""B145: the program on processors that the build machine is not, emulated: it picks kernels that they have, and says the same."""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "app"))
import harness
from harness import good

import subprocess

MACHINES = [("Nehalem", "portable"), ("Haswell", "avx2 portable")]


def emulated(machine, *words):
    done = subprocess.run(["qemu-x86_64", "-cpu", machine, harness.PROGRAM, *words], capture_output=True, text=True, errors="replace", timeout=1500,
                          env=harness.environment())
    # The emulator itself mentions what it does not emulate.
    done.stderr = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("qemu-x86_64: warning: TCG"))
    return done


def check(machine, levels, model, words):
    if not shutil.which("qemu-x86_64"):
        raise harness.Skip("qemu-user is not installed")
    version = good(emulated(machine, "--version"))
    assert re.search(rf"CPU, {levels}$", version, re.MULTILINE), version
    with harness.scratch() as folder:
        path = harness.need(model, model) if model else harness.tiny(folder)
        options = ["run", path, "--json", "--temperature", "0", *words]
        native = json.loads(good(harness.mekik(*options)))["tokens"]
        answers = {isa: json.loads(good(emulated(machine, *options, "--set", f"backend.isa={isa}")))["tokens"] for isa in ["auto", *levels.split()]}
        assert all(tokens == native for tokens in answers.values()), (native, answers)
        missing = emulated(machine, *options, "--set", "backend.isa=avx512")
        assert missing.returncode == 2 and "this machine cannot run avx512" in missing.stderr, missing


def main():
    long = "--long" in sys.argv
    model, words = (harness.SMOLLM2, ["--raw", "-p", "Why is", "--max-tokens", "3"]) if long else (None, ["--tokens", "1,2,3", "--max-tokens", "8"])
    harness.main([(machine, lambda m=machine, l=levels: check(m, l, model, words)) for machine, levels in MACHINES])


main()
