#!/usr/bin/env python3
"""Keys and values as integers (cache.kv = "q8_head", "q4_head") on tiny models of many families.

The cpu backend has to compute what the reference backend computes from the same integers, with math = "exact" and by default; steps cut
anywhere and blocks of any size have to give the same bits; the form has to matter, and less with more bits; and the plan has to show its bytes.
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

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(os.environ.get("MEKIK_BUILD") or os.path.join(HERE, "..", "..", "build", "release"), "bin", "mekik")
# Grouped heads; soft caps and windows; sinks; odd heads; ALiBi; chunks; keys wider than values; layers that share; latents; recurrences.
MODELS = ["llama-plain", "gemma2-plain", "gemma3-plain", "gpt_oss-plain", "phi3-plain", "bloom-odd", "llama4_text-plain", "mimo_v2_flash-plain",
          "gemma3n-shared", "deepseek_v2-lite", "qwen3_next-plain"]


def mekik(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"mekik {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}"
    return json.loads(done.stdout)


def logits(path, tokens, *settings):
    words = [w for s in settings for w in ("--set", s)]
    return np.array(mekik("logits", path, "--tokens", tokens, "--all", "--json", *words)["logits"], np.float64)


def check(name):
    path = os.path.join(HERE, "tiny", name)
    expected = np.load(os.path.join(path, "expected.npz"))
    tokens = ",".join(map(str, expected["tokens"]))
    truth = logits(path, tokens, "cache.kv=f32", "backend.math=exact")
    spread = truth.std()
    off = {}
    for form in ("q8_head", "q4_head"):
        kv = f"cache.kv={form}"
        reference = logits(path, tokens, kv, "backend.use=reference")
        off[form] = np.abs(reference - truth).mean() / spread
        for math, bound in (("exact", 0.02), ("quantized", 0.1)):
            here = logits(path, tokens, kv, f"backend.math={math}")
            # A number that lies between two codes may be rounded to the other one, so not every logit is as near as the mean.
            far = np.abs(here - reference).mean() / spread
            assert far <= min(bound, 0.5 * off[form] + 1e-6) or far < 1e-3, f"{form}, {math}: {far:.1e} from the reference, {off[form]:.1e} from F32"
        whole = logits(path, tokens, kv)
        for settings in (("scheduler.max_batch_tokens=3",), ("cache.block_tokens=16",), ("cache.block_tokens=5", "scheduler.max_batch_tokens=7"),
                         ("backend.threads=1",)):
            assert np.array_equal(whole, logits(path, tokens, kv, *settings)), f"{form} with {settings} gives other bits"
    assert 0 < off["q8_head"] < 0.05 and off["q8_head"] < off["q4_head"] < 0.7, off
    return off


def sizes():
    """One scale of two bytes for a key and for a value: llama-plain's bytes by its heads."""
    path = os.path.join(HERE, "tiny", "llama-plain")
    with open(os.path.join(path, "config.json")) as file:
        config = json.load(file)
    d = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    heads = config["num_key_value_heads"] * config["num_hidden_layers"]
    found = {}
    for form in ("f16", "q8_head", "q4_head"):
        found[form] = mekik("model", path, "--json", "--set", f"cache.kv={form}")["needs"]["kv_bytes_per_token"]
    up = lambda n, to: (n + to - 1) // to * to
    values = {"f16": 2 * d + 2 * up(d, 16), "q8_head": up(d, 4) + up(d, 16) + 4, "q4_head": up(d, 8) // 2 + up(d, 32) // 2 + 4}
    for form, bytes_of_head in values.items():
        exact = heads * bytes_of_head
        assert exact <= found[form] <= exact + heads * 2 * 64 / 32, (form, found[form], exact)  # a head's part of a block ends at 64 bytes


for model in MODELS:
    print(model, {form: f"{x:.1e}" for form, x in check(model).items()}, flush=True)
sizes()
