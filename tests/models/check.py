#!/usr/bin/env python3
"""Compares the program with the checked-in reference of a model (made by make_reference.py): logits, and 48 greedy tokens.

    check.py REFERENCE.npz MODEL.gguf [exact|quantized|BACKEND]

For backend.math = "exact" and for its default, "quantized", and for another backend than cpu alike: cosine over 0.999 for each prompt, and on average closer to the
reference than llama.cpp on the same file was; greedy equal, or first different where the reference's two best tokens lie within 0.05
standard deviations of its logits.
"""
import json
import os
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed (test.sh installs it)")
    sys.exit(77)

COUNT = 48
LEAST_COSINE = 0.999
NEAR_TIE = 0.05  # lead in standard deviations


def mekik(*words):
    program = os.path.join(os.environ["MEKIK_BUILD"], "bin", "mekik")
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=300)
    if done.returncode != 0 and "has no device 0" in done.stderr:
        print(f"skipped: {done.stderr.strip()}")
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"mekik {' '.join(words)[:200]} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def main():
    reference, model = np.load(sys.argv[1]), sys.argv[2]
    if not os.path.exists(model):
        print(f"skipped: {model} is not there")
        sys.exit(77)
    mode = sys.argv[3] if len(sys.argv) > 3 else "exact"
    math = ["--set", f"backend.math={mode}" if mode in ("exact", "quantized") else f"backend.use={mode}"]
    prompts = sum(1 for name in reference.files if name.startswith("tokens_"))
    theirs = reference["llama_cosines"]
    ours, faults = [], []
    for i in range(prompts):
        tokens = ",".join(map(str, reference[f"tokens_{i}"]))
        expected = reference[f"logits_{i}"] * reference[f"scale_{i}"]
        logits = np.array(mekik("logits", model, "--tokens", tokens, "--json", *math)["logits"][-1], np.float64)
        ours.append(cosine(logits, expected))
        if ours[-1] <= LEAST_COSINE:
            faults.append(f"prompt {i}: cosine {ours[-1]:.6f}")
        made = mekik("run", model, "--tokens", tokens, "--max-tokens", str(COUNT), "--temperature", "0", "--ignore-eos", "--json", *math)["tokens"]
        wanted = reference[f"greedy_{i}"][:COUNT].tolist()
        at = next((k for k in range(COUNT) if k >= len(made) or made[k] != wanted[k]), None)
        note = "equal"
        if at is not None:
            lead = float(reference[f"lead_{i}"][at])
            note = f"first differs at {at}, where the reference leads by {lead:.4f} standard deviations"
            if lead >= NEAR_TIE or at >= len(made):
                faults.append(f"prompt {i}: greedy {note}")
        print(f"prompt {i:2}: cosine {ours[-1]:.7f}" + (f" (llama.cpp {theirs[i]:.7f})" if len(theirs) else "") + f", greedy {note}")
    print(f"mean cosine {np.mean(ours):.7f}" + (f", llama.cpp's {np.mean(theirs):.7f}" if len(theirs) else ""))
    if len(theirs) and np.mean(1 - np.array(ours)) >= np.mean(1 - theirs):
        faults.append("on average llama.cpp's logits are closer to the reference")
    print("\n".join(faults) or "as expected")
    sys.exit(1 if faults else 0)


main()
