#!/usr/bin/env python3
"""What each form of keys and values costs in quality, as a table in Markdown.

    kv_quality.py [--tokens 8192] [--window 2048] [--form q8_head]... [--text FILE]... MODEL.gguf...

The text is ours: README.md, CONTRIBUTING.md and docs/, and where that is not enough the licence; or the files given. Its tokens run in
windows, once with keys and values in F32 (all else being the model's default) and once with each form. Perplexity; the mean of the
Kullback-Leibler divergence of the next token's probabilities from those with F32, and the value that 99% of the tokens stay below; how often
the likeliest token is the same; bytes of a token. Build bench_kv_quality and mekik first.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BIN = os.path.join(os.environ.get("MEKIK_BUILD") or os.path.join(ROOT, "build", "release"), "bin")


def tokens_of(model, files, wanted, scratch):
    text = os.path.join(scratch, "text")
    with open(text, "w") as out:
        for name in files:
            with open(name, encoding="utf-8") as file:
                out.write(file.read())
    said = subprocess.run([os.path.join(BIN, "mekik"), "tokenize", model, "--file", text, "--json"], capture_output=True, text=True, check=True)
    tokens = json.loads(said.stdout)["tokens"]
    if len(tokens) < wanted:
        sys.exit(f"{len(tokens)} tokens of text where {wanted} are wanted; give more with --text")
    return tokens[:wanted]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("models", nargs="+")
    arguments.add_argument("--tokens", type=int, default=8192)
    arguments.add_argument("--window", type=int, default=2048)
    arguments.add_argument("--form", action="append")
    arguments.add_argument("--text", action="append")
    given = arguments.parse_args()
    files = given.text or [os.path.join(ROOT, "README.md"), os.path.join(ROOT, "CONTRIBUTING.md"),
                           *sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))), os.path.join(ROOT, "LICENSE")]
    forms = given.form or ["f16", "bf16", "q8_head", "q4_head"]
    print("| model | kv | bytes a token | perplexity | KL mean | KL 99% | same token |\n|---|---|---|---|---|---|---|")
    for model in given.models:
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "tokens")
            with open(path, "w") as file:
                file.write(" ".join(map(str, tokens_of(model, files, given.tokens, scratch))))
            words = [os.path.join(BIN, "bench_kv_quality"), model, path, str(given.window), *forms]
            said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        for line in said.splitlines():
            row = json.loads(line)
            print(f"| {os.path.basename(model)} | {row['kv']} | {row['token_bytes']:,} | {row['perplexity']:.3f} | {row['kl_mean']:.1e} "
                  f"| {row['kl_p99']:.1e} | {100 * row['same_top']:.2f}% |", flush=True)


main()
