#!/usr/bin/env python3
"""Converts the tiny models of tests/models/tiny to GGUF and back.

    tiny.py PROGRAM [NAME...]

The GGUF file has the tensors that llama.cpp's converter writes (gguf.json of each folder), under the same names and sizes, with the same numbers,
and its keys; the folder that comes back has the tensors of the first; and all three compute the same logits. What one of the formats cannot hold
is refused by name; tiny_rules.py lists what must not be.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
except ImportError:
    print("skipped: numpy or gguf is not installed (test.sh installs them)")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "models")
sys.path.insert(0, MODELS)
import gguf_twin  # noqa: E402
from tiny_rules import FOLDED, LOST, MUST, ODD_TENSORS, OTHER_NAMES, REFUSED, SAID, TURNED  # noqa: E402

PROGRAM = sys.argv[1]
TINY = os.path.join(MODELS, "tiny")
BOUND = 1e-5  # of the logits' standard deviation: reals are kept in F32 by GGUF
# Keys of llama.cpp's converter that say what is so anyway.
# Constants of its own; that of its dense layers.
OTHERWISE = ("falcon.context_length", "granitehybrid.context_length", "mamba2.context_length", "llama4.feed_forward_length")
IMPLIED = ("general.", "tokenizer.", "GGUF.")


class Refused(Exception):
    """The program says what does not go."""


def mekik(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode == 1 and arguments[0] == "convert" and any(said in done.stderr for said in SAID):
        raise Refused(done.stderr.strip().replace("\n", " "))
    assert done.returncode == 0, f"mekik {' '.join(arguments)}: exit code {done.returncode}: {done.stderr or done.stdout}"
    return done.stdout


def logits(model, tokens):
    out = mekik("logits", model, "--tokens", ",".join(map(str, tokens)), "--all", "--json", "--set", "backend.use=reference", "--set", "cache.memory=1MiB")
    return np.array(json.loads(out)["logits"], np.float32)


def same_logits(a, b, tokens, what):
    if tokens is None:  # an encoder: that its program is the same was checked while it was converted
        return
    first, second = logits(a, tokens), logits(b, tokens)
    off = np.abs(first - second).max() / first.std()
    assert off <= BOUND, f"{what}: logits differ by {off:.2g} of their standard deviation"


def values(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape([int(size) for size in tensor.shape[::-1]])


def same_tensors(mine, twin):
    """Both as name: values."""
    def squeezed(shape):  # [1, n] is written as [n] by some
        return [size for size in shape if size != 1]

    assert set(mine) == set(twin), f"tensors only here: {sorted(set(mine) - set(twin))[:5]}, only there: {sorted(set(twin) - set(mine))[:5]}"
    for name, value in twin.items():
        assert squeezed(mine[name].shape) == squeezed(value.shape), f"{name} has {mine[name].shape}, not {value.shape}"
        assert np.allclose(mine[name].reshape(value.shape), value, rtol=1e-6, atol=1e-7), f"{name} differs by {np.abs(mine[name].reshape(value.shape) - value).max()}"


def keys_of(reader):
    return {name: field.contents() for name, field in reader.fields.items() if not name.startswith(IMPLIED)}


def same_keys(mine, twin):
    for key, value in twin.items():
        if key not in mine or key in OTHERWISE:
            continue  # that both compute the same is seen by the logits
        here = mine[key]
        same = np.allclose(here, value, rtol=1e-6) if isinstance(value, (float, int)) and not isinstance(value, bool) else here == value
        assert same, f"key {key} is {here}, llama.cpp's converter writes {value}"


def check(folder, scratch):
    reference = np.load(os.path.join(folder, "expected.npz"))
    tokens = [int(t) for t in reference["tokens"]] if "logits" in reference else None
    made, back, twin = (os.path.join(scratch, name) for name in ("made.gguf", "back", "twin.gguf"))
    name = os.path.basename(folder)
    notes = json.loads(mekik("convert", folder, "--to", "gguf", "-o", made, "--json"))["notes"]
    same_logits(folder, made, tokens, "to GGUF")
    if gguf_twin.there(folder):
        gguf_twin.write(folder, twin)
        mine, other = gguf.GGUFReader(made), gguf.GGUFReader(twin)
        odd, plain = ODD_TENSORS.get(name, ("", ""))
        theirs = {t.name.replace(odd, plain) if odd and plain not in t.name else t.name: values(t) for t in other.tensors}
        if not name.startswith(TURNED):
            same_tensors({t.name: values(t) for t in mine.tensors}, theirs)
        same_keys(keys_of(mine), keys_of(other))
    mekik("convert", made, "--to", "safetensors", "-o", back)
    same_logits(folder, back, tokens, "and back")
    if name.startswith(OTHER_NAMES + FOLDED):
        return
    before, after = ({key: value for key, (_, value) in gguf_twin.read_safetensors(os.path.join(where, "model.safetensors")).items()} for where in (folder, back))
    if any(note.startswith("left out") for note in notes):
        before = {key: value for key, value in before.items() if key in after}
    same_tensors(after, before)
    config = json.load(open(os.path.join(back, "config.json")))
    assert config["architectures"] and config["model_type"], config


def main():
    chosen = sys.argv[2:] or sorted(os.listdir(TINY))
    failed, went, missing = 0, 0, set(MUST) - set(chosen) if not sys.argv[2:] else set()
    for name in chosen:
        folder = os.path.join(TINY, name)
        if not os.path.exists(os.path.join(folder, "model.safetensors")):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            try:
                check(folder, scratch)
                went += 1
            except Refused as refused:
                wrong = name in MUST or {**REFUSED, **LOST}.get(name, "") not in str(refused)
                failed += wrong
                print(f"{'FAILED ' if wrong else 'refused'} {name}: {refused}")
            except AssertionError as error:
                failed += 1
                print(f"FAILED  {name}: {error}")
    print(f"{len(chosen)} models, {went} went to GGUF and back, {failed} failures; not there any more: {sorted(missing) or 'none'}")
    return 1 if failed or missing else 0


sys.exit(main())
