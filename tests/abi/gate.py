#!/usr/bin/env python3
"""The ABI gate lets today's header pass after every frozen one, and judges each of mutations.toml as it should."""
import os
import shutil
import sys
import tempfile
import tomllib

SOURCE = os.environ.get("MEKIK_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "sdk", "abi"))
import gate

HEADERS = os.path.join(SOURCE, "sdk", "include")


def mutated(folder, mutation):
    os.makedirs(os.path.join(folder, "mekik"))
    for name in ("plugin.h", "ops.def"):
        text = gate.read(HEADERS, name)
        if mutation.get("file", "plugin.h") == name and "find" in mutation:
            if text.count(mutation["find"]) != 1:
                raise SystemExit(f"{mutation['name']}: occurs {text.count(mutation['find'])} times: {mutation['find']}")
            text = text.replace(mutation["find"], mutation["replace"])
        with open(os.path.join(folder, "mekik", name), "w", encoding="utf-8") as f:
            f.write(text)
    return folder


def main():
    if shutil.which("abidiff") is None:
        print("abidiff is not installed (Debian: abigail-tools)")
        return 77
    failed = 0
    frozen = sorted(d for d in os.listdir(os.path.join(SOURCE, "sdk", "abi")) if d.startswith("v"))
    for version in frozen:
        faults, _ = gate.judge(os.path.join(SOURCE, "sdk", "abi", version), HEADERS)
        for fault in faults:
            print(f"FAILED: plugins of {version} would break: {fault}")
        failed += bool(faults)
    with open(os.path.join(SOURCE, "tests", "abi", "mutations.toml"), "rb") as f:
        mutations = tomllib.load(f)["mutation"]
    with tempfile.TemporaryDirectory() as scratch:
        for i, mutation in enumerate(mutations):
            faults, _ = gate.judge(HEADERS, mutated(os.path.join(scratch, str(i)), mutation))
            verdict = "break" if faults else "pass"
            if verdict != mutation["verdict"] or mutation.get("says", "") not in "\n".join(faults):
                print(f"FAILED: {mutation['name']}: {verdict}, expected {mutation['verdict']} {mutation.get('says', '')}: {faults}")
                failed += 1
    print(f"{len(frozen)} frozen headers, {len(mutations)} mutations, {failed} failed")
    return 1 if failed or not frozen else 0


if __name__ == "__main__":
    sys.exit(main())
