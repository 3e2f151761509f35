#!/usr/bin/env python3
"""Converts real GGUF files to folders and back: logits stay, and the tokenizer that comes back is the one that went.

    real.py PROGRAM MODEL.gguf        exit code 77: the model is not there
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
except ImportError:
    print("skipped: numpy or gguf is not installed (test.sh installs them)")
    sys.exit(77)

PROGRAM, MODEL = sys.argv[1:3]
TOKENS = "1,504,253,216,42"
TEXTS = ["Hello world", " two  spaces", "2024 und 17,5 %", "caf\u00e9 na\u00efve \u4f60\u597d \U0001f600", "def f(x):\n\treturn x**2\n", "don't we'll"]
KEYS = ["model", "pre", "tokens", "token_type", "merges", "bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id", "add_bos_token",
        "add_space_prefix"]


def mekik(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"mekik {' '.join(arguments)} failed: {done.stderr}")
    return done.stdout


def logits(model):
    out = mekik("logits", model, "--tokens", TOKENS, "--json", "--set", "cache.memory=32MiB", "--set", "backend.math=exact")
    return np.array(json.loads(out)["logits"], np.float32)


def tokens(model):
    return [json.loads(mekik("tokenize", model, "--text", text, "--add-special", "--json"))["tokens"] for text in TEXTS]


def same_keys(before, after):
    for key in KEYS:
        name = f"tokenizer.ggml.{key}"
        here = {which: reader.fields[name].contents() if name in reader.fields else None for which, reader in (("before", before), ("after", after))}
        if here["before"] is not None and not (key == "add_space_prefix" and here["after"] is None):
            assert here["before"] == here["after"], f"{name} was {str(here['before'])[:80]}, is {str(here['after'])[:80]}"


def main():
    if not os.path.exists(MODEL):
        print(f"skipped: no {MODEL}")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        folder, back = os.path.join(scratch, "folder"), os.path.join(scratch, "back.gguf")
        print(mekik("convert", MODEL, "--to", "safetensors", "-o", folder, "--max-shard-mib", "200"))
        assert os.path.exists(os.path.join(folder, "model.safetensors.index.json"))
        first = logits(MODEL)
        off = np.abs(logits(folder) - first).max() / first.std()
        print(f"folder: {off:.2g} of a standard deviation")
        assert off < 1e-3
        expected = tokens(MODEL)
        assert tokens(folder) == expected, "the folder tokenizes differently"
        print(mekik("convert", folder, "--to", "gguf", "-o", back))
        off = np.abs(logits(back) - first).max() / first.std()
        print(f"back: {off:.2g} of a standard deviation")
        assert off < 1e-3
        assert tokens(back) == expected, "the file that came back tokenizes differently"
        same_keys(gguf.GGUFReader(MODEL), gguf.GGUFReader(back))
    return 0


sys.exit(main())
