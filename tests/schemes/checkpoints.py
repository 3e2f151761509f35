"""The quantized models of checkpoints/ (make_checkpoints.py): decoded weights to the bit, what the load says, and the model's logits.

    checkpoints.py SCHEME_TOOL MEKIK [NAME...]
"""
import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed (test.sh installs it)")
    sys.exit(77)

TOOL, MEKIK, *NAMES = sys.argv[1:]
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints")
BOUND = 1e-3  # of the logits' standard deviation
# By default weights of integers meet activations of 8 or 15 bits, and are not rounded to the tool's type: the error in the mean is held, not the most.
ROUGH = 4e-2
RUNS = {"reference": ["--set", "backend.use=reference"], "cpu exact": ["--set", "backend.math=exact"], "cpu": []}


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=300)


def check_weights(folder, expected, faults):
    with tempfile.TemporaryDirectory() as where:
        done = run(TOOL, "decode", folder, os.path.join(where, "out"))
        if done.returncode != 0:
            faults.append(f"scheme_tool: {done.stderr.strip()}")
            return
        flat = {way: np.fromfile(os.path.join(where, "out." + way), np.float32) for way in ("decoded", "factored")}
    at, seen = 0, set()
    for line in done.stdout.splitlines():
        name, count, kind = line.split("\t")
        values = {way: numbers[at : at + int(count)] for way, numbers in flat.items()}
        at += int(count)
        want = expected["tensors"].get(name)
        if want is None:
            continue
        seen.add(name)
        for way, numbers in values.items():
            if hashlib.sha256(numbers.tobytes()).hexdigest() != want["sha256"]:
                faults.append(f"{name}, {way} ({kind}): begins {numbers[:6].tolist()}, its tool says {want['first']}")
        if kind == "float" and not expected.get("decoded"):
            faults.append(f"{name} has no form")
    faults += [f"{name} was not decoded" for name in expected["tensors"] if name not in seen]


def check_logits(folder, expected, faults):
    tokens, vocabulary = expected["tokens"], expected["vocabulary"]
    want = np.frombuffer(base64.b64decode(expected["logits"]), np.float32).reshape(len(tokens), vocabulary)
    for name, settings in RUNS.items():
        done = run(MEKIK, "logits", folder, "--tokens", ",".join(map(str, tokens)), "--all", "--json", *settings)
        if "this backend has no kernel for" in done.stderr:  # which operations there are is not what is tested here
            print(f"{os.path.basename(folder)}, {name}: {done.stderr.strip()}")
            continue
        if done.returncode != 0:
            faults.append(f"{name}: {done.stderr.strip()[-300:]}")
            continue
        got = np.array(json.loads(done.stdout)["logits"], np.float64)
        far = float((np.sqrt(np.mean((got - want) ** 2)) if name == "cpu" else np.abs(got - want).max()) / want.std())
        if not far <= (ROUGH if name == "cpu" else BOUND):
            faults.append(f"{name}: logits are {far:.1e} standard deviations off")
        print(f"{os.path.basename(folder)}, {name}: {far:.1e}")


def check_notes(folder, expected, faults):
    """What `check` says of the weights, without reading them."""
    done = run(MEKIK, "check", folder, *RUNS["reference"])
    notes = [line for line in done.stdout.splitlines() if line.startswith("  note: ")]
    faults += [f"does not say \"{wanted}\"" for wanted in expected.get("notes", []) if not any(wanted in note for note in notes)]
    decoded = any("is decoded to" in note and "16) is decoded" not in note for note in notes)
    if done.returncode != 0 or decoded != bool(expected.get("decoded")):
        faults.append(f"says {notes} {done.stderr.strip()}")


def main():
    bad = []
    for name in NAMES or sorted(os.listdir(HERE)):
        folder = os.path.join(HERE, name)
        with open(os.path.join(folder, "expected.json")) as file:
            expected = json.load(file)
        faults = []
        check_weights(folder, expected, faults)
        check_notes(folder, expected, faults)
        check_logits(folder, expected, faults)
        bad += [f"{name}: {fault}" for fault in faults]
    sys.exit("\n".join(bad) or 0)


main()
