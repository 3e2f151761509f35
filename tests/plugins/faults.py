#!/usr/bin/env python3
"""mekik-validate finds every plugin of faulty/faults.txt, by the check that is written there, and nothing in the ones that are right."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("MEKIK_SOURCE") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("MEKIK_BUILD") or os.path.join(SOURCE, "build", "release")
VALIDATE = os.path.join(BUILD, "bin", "mekik-validate")
SLOW = {"hangs", "done_never"}


def rows(wanted):
    with open(os.path.join(HERE, "faulty", "faults.txt"), encoding="utf-8") as f:
        for line in f:
            words = line.split("#")[0].split()
            if words and (not wanted or words[1] in wanted or f"{words[0]}/{words[1]}" in wanted):
                yield words


def sample(folder):
    """What the faulty loader opens."""
    path = os.path.join(folder, "sample.flt")
    if not os.path.exists(path):
        import struct
        with open(path, "wb") as f:
            f.write(b"FLT1" + struct.pack("<I100f", 100, *range(100)))
    return path


def validate(kind, fault, check, folder):
    """Which checks failed, and what they said."""
    library = os.path.join(BUILD, "tests", "faulty", "exports" if fault == "exports" else kind, f"{kind}_faulty.so")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MEKIK_")}
    words = [VALIDATE, "--json", "--jobs", "1", library]
    if fault != "-":
        environment["MEKIK_FAULT"] = fault
        words += ["--only", check, "--time-limit", "4" if fault == "hangs" else "60"]
    if kind == "loader":
        words += ["--sample", sample(folder)]
    result = subprocess.run(words, capture_output=True, text=True, errors="replace", env=environment, timeout=500)
    if result.returncode not in (0, 1):
        raise RuntimeError(f"{words}: exit code {result.returncode}: {result.stderr}")
    report = json.loads(result.stdout)
    assert (report["failed"] > 0) == (result.returncode == 1), result.returncode
    return {c["check"]: c["faults"] for c in report["checks"] if c["verdict"] == "failed"}


def main(arguments):
    missing = []
    loud = "--loud" in arguments
    table = list(rows({a for a in arguments if not a.startswith("--")}))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        sample(folder)
        table.sort(key=lambda row: row[1] not in SLOW)
        found = list(pool.map(lambda row: validate(*row, folder), table))
    for (kind, fault, check), failed in zip(table, found):
        if loud:
            print(f"{kind} {fault}: {json.dumps(failed)[:300]}")
        if fault == "-" and failed:
            missing.append(f"{kind}: the one that is right fails {json.dumps(failed)[:2000]}")
        if fault != "-" and check not in failed:
            missing.append(f"{kind} {fault}: {check} does not find it")
    print("\n".join(missing))
    print(f"{len(table)} plugins, {len(missing)} of them judged wrongly")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
