#!/usr/bin/env python3
"""Writes rope_vectors.json: rotary frequencies as transformers computes them, for every recipe and both spellings.

    python rope_vectors.py        needs torch and transformers; the tests need only the JSON file
"""
import json
import os

from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

HERE = os.path.dirname(os.path.abspath(__file__))
SHORT, LONG = [1.0 + 0.05 * i for i in range(16)], [1.0 + 1.5 * i for i in range(16)]
CASES = [  # head dim, base, context, planned length, group
    (32, 1e4, 4096, 4096, dict(rope_type="linear", factor=4.0)),
    (32, 1e4, 4096, 4096, dict(rope_type="dynamic", factor=2.0)),
    (32, 1e4, 4096, 16384, dict(rope_type="dynamic", factor=2.0)),
    (64, 1e6, 131072, 131072, dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32768)),
    (64, 1e4, 16384, 16384, dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=4096, beta_fast=24.0, beta_slow=2.0)),
    (64, 1e4, 163840, 163840, dict(rope_type="yarn", factor=40.0, original_max_position_embeddings=4096, mscale=0.707, mscale_all_dim=1.0)),
    (64, 1e4, 163840, 163840, dict(rope_type="yarn", factor=40.0, original_max_position_embeddings=4096, mscale=1.0, mscale_all_dim=1.0)),
    (64, 1.5e5, 131072, 131072, dict(rope_type="yarn", factor=32.0, original_max_position_embeddings=4096, truncate=False)),
    (64, 1e4, 16384, 16384, dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=4096, attention_factor=1.25)),
    (32, 1e4, 131072, 4096, dict(rope_type="longrope", factor=32.0, original_max_position_embeddings=4096, short_factor=SHORT, long_factor=LONG)),
    (32, 1e4, 131072, 65536, dict(rope_type="longrope", factor=32.0, original_max_position_embeddings=4096, short_factor=SHORT, long_factor=LONG)),
    (32, 1e4, 131072, 65536, dict(rope_type="longrope", factor=32.0, original_max_position_embeddings=4096, short_factor=SHORT, long_factor=LONG,
                                  attention_factor=1.5)),
    (128, 5e5, 131072, 131072, dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)),
    (64, 5e5, 131072, 131072, dict(rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)),
    (32, 1e4, 131072, 4096, dict(rope_type="longrope", factor=3.5, original_max_position_embeddings=4096, short_factor=SHORT, long_factor=LONG)),
    (15, 1e4, 4096, 4096, dict(rope_type="linear", factor=3.0)),
    (64, 1e6, 131072, 131072, dict(rope_type="proportional", partial_rotary_factor=0.25)),
    (24, 1e4, 4096, 4096, dict(rope_type="proportional", partial_rotary_factor=0.4, factor=2.0)),
]

out = []
for dim, base, context, planned, group in CASES:
    original = group.get("original_max_position_embeddings")
    config = LlamaConfig(hidden_size=4 * dim, num_attention_heads=4, head_dim=2 * dim, max_position_embeddings=context,
                         rope_parameters=dict(group, rope_theta=base))
    config.head_dim = dim  # a part of a head may be odd, a head may not
    if original:
        config.original_max_position_embeddings = original
    frequencies, magnitude = ROPE_INIT_FUNCTIONS[group["rope_type"]](config, "cpu", seq_len=planned)
    for key in ("rope_type", "type"):
        scaling = {key: group["rope_type"], **{k: v for k, v in group.items() if k != "rope_type"}}
        out.append(dict(dim=dim, base=base, context=context, planned=planned, scaling=scaling, magnitude=float(magnitude),
                        frequencies=[float(f"{x:.9g}") for x in frequencies.tolist()]))
with open(f"{HERE}/rope_vectors.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]\n")
