#!/usr/bin/env python3
"""Runs the tiny models of tiny/ (made by make.py) and compares logits and greedy tokens with what transformers computes.

    tiny.py [--gguf] [--backend NAME]... [--models FOLDER] [NAME...]        NAME is FAMILY or FAMILY-VARIANT

Decoders give logits, encoders an embedding or a score. Each model runs on the reference backend and on the cpu backend, there with math = "exact"
and by default, too, or on the backends that are named; models of 16-bit weights would then keep keys and values in F16, and keep them in F32 here. The logits of all positions
have to be within a thousandth of their standard deviation, 24 greedy tokens equal. With --gguf the models are written as GGUF before (gguf_twin.py).
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

try:
    import gguf  # noqa: F401
    import numpy as np
except ImportError:
    print("skipped: numpy or gguf is not installed (test.sh installs them)")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
TINY = os.path.join(HERE, "tiny")
PROGRAM = os.path.join(os.environ.get("MEKIK_BUILD") or os.path.join(HERE, "..", "..", "build", "release"), "bin", "mekik")
BOUND = 1e-3  # of the logits' standard deviation
RUNS = {
    "reference": ["--set", "backend.use=reference"],
    "cpu": [],
    "cpu exact": ["--set", "backend.math=exact"],
    "vulkan": ["--set", "backend.use=vulkan"],
}
USUAL = ("reference", "cpu", "cpu exact")


def mekik(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"mekik {words[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def distance(got, expected):
    got = np.array(got, np.float64).reshape(expected.shape)
    return float(np.abs(got - expected).max() / expected.std())


def decoder(path, expected, settings):
    tokens = ",".join(map(str, expected["tokens"]))
    far = distance(mekik("logits", path, "--tokens", tokens, "--all", "--json", *settings)["logits"], expected["logits"])
    assert far <= BOUND, f"logits are {far:.1e} standard deviations off"
    if len(expected["greedy"]) == 0:
        return far
    wanted = expected["greedy"].tolist()
    made = mekik("run", path, "--tokens", tokens, "--max-tokens", str(len(wanted)), "--temperature", "0", "--ignore-eos", "--json", *settings)["tokens"]
    assert made == wanted, f"greedy tokens are {made}, not {wanted}"
    return far


def vector(path, expected, settings):
    """An embedding, of length 1, or the score of a pair."""
    tokens = ",".join(map(str, expected["tokens"]))
    if "score" in expected:
        score = mekik("logits", path, "--tokens", tokens, "--json", "--set", 'model.pair_template="{query} {document}"', *settings)["score"]
        far = float(np.abs(np.array(score) - expected["score"]).max() / max(1, np.abs(expected["score"]).max()))
    else:
        far = distance(mekik("embed", path, "--tokens", tokens, "--json", *settings)["embedding"], expected["embedding"])
    assert far <= BOUND, f"{far:.1e} off"
    return far


def check(path, folder, run):
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    single = (config.get("dtype") or config["torch_dtype"]) == "float32"
    expected = np.load(os.path.join(folder, "expected.npz"))
    settings = RUNS[run] + (["--set", "cache.kv=f32"] if run in ("cpu", "vulkan") and not single else [])
    return (decoder if "logits" in expected else vector)(path, expected, settings)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--gguf", action="store_true")
    arguments.add_argument("--models", default=TINY, help="the folder of the models, by default tiny/")
    arguments.add_argument("--backend", action="append", choices=RUNS)
    given = arguments.parse_args()
    names = [n for n in sorted(os.listdir(given.models)) if not given.names or n in given.names or n.split("-")[0] in given.names]
    start, worst, failed = time.monotonic(), {}, []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        paths = {n: os.path.join(given.models, n) for n in names}
        if given.gguf:
            import gguf_twin
            paths = {n: gguf_twin.write(p, os.path.join(scratch, n + ".gguf")) for n, p in paths.items() if gguf_twin.there(p)}
        jobs = {pool.submit(check, path, os.path.join(given.models, n), run): (n, run) for n, path in paths.items() for run in given.backend or USUAL}
        for job in concurrent.futures.as_completed(jobs):
            name, run = jobs[job]
            try:
                worst[run] = max(worst.get(run, (0, "")), (job.result(), name))
            except Exception as fault:
                if "has no device 0" in str(fault):
                    print(f"skipped: {fault}")
                    sys.exit(77)
                failed.append((name, run))
                print(f"FAILED  {name} on {run}: {fault}", flush=True)
    for run, (far, name) in sorted(worst.items()):
        print(f"{run}: worst logits {far:.1e} standard deviations off ({name})")
    print(f"{len(jobs)} runs of {len(paths)} models in {time.monotonic() - start:.0f} s, {len(failed)} failed")
    sys.exit(1 if failed else 0)


main()
