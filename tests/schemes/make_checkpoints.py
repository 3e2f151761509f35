#!/usr/bin/env python3
"""Writes the tiny quantized models of checkpoints/, and what their tools make of them.

    python make_checkpoints.py [NAME...] [--to FOLDER]      needs torch, transformers, bitsandbytes and compressed-tensors

Each is a one-layer Llama (or a mixture, or a gpt-oss) in the layout of a tool. bitsandbytes and compressed-tensors pack and unpack by themselves; GPTQ,
AWQ, FP8 and Model Optimizer are written to the letter of their formats in writers.py, which also says what their tools compute when they unpack.
expected.json has, of each quantized weight, its shape, the SHA-256 of its F32 numbers and the first of them; `tokens`; and `logits` [tokens][vocabulary]
(F32, base64) that transformers computes in F32 from the unpacked weights.
"""
import argparse
import base64
import hashlib
import json
import os
import shutil
import sys

import torch
import transformers
from safetensors.torch import save_file

import writers

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = [1, 17, 33, 5, 60, 2, 41, 9]


def small(**changes):
    keys = dict(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=32,
                max_position_embeddings=128, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, rms_norm_eps=1e-5)
    keys.update(changes)
    return keys


def model_of(kind, dtype):
    torch.manual_seed(7)
    if kind == "llama":
        config = transformers.LlamaConfig(**small())
        model = transformers.LlamaForCausalLM(config)
    elif kind == "mixture":
        config = transformers.Qwen3MoeConfig(**small(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, decoder_sparse_step=1,
                                                    mlp_only_layers=[], norm_topk_prob=True))
        model = transformers.Qwen3MoeForCausalLM(config)
    else:
        config = transformers.GptOssConfig(**small(num_local_experts=4, num_experts_per_tok=2, intermediate_size=32, sliding_window=8,
                                                  layer_types=["full_attention"]))
        model = transformers.GptOssForCausalLM(config)
    model = model.float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            gain = 1.0 if parameter.dim() == 1 or "embed" in name else 1.5 / parameter.shape[-1] ** 0.5
            parameter.copy_((torch.randn(parameter.shape) * gain + (1.0 if "norm" in name else 0.0)).to(dtype))
    config.dtype = dtype
    return config, model


def split_experts(state):
    """Fused experts as their checkpoints have them: a matrix for each."""
    out = {}
    for name, value in state.items():
        if name.endswith("experts.gate_up_proj"):
            base = name[: -len("gate_up_proj")]
            for e in range(value.shape[0]):
                half = value.shape[1] // 2
                out[f"{base}{e}.gate_proj.weight"] = value[e, :half].contiguous()
                out[f"{base}{e}.up_proj.weight"] = value[e, half:].contiguous()
        elif name.endswith("experts.down_proj"):
            for e in range(value.shape[0]):
                out[f"{name[: -len('down_proj')]}{e}.down_proj.weight"] = value[e].contiguous()
        else:
            out[name] = value
    return out


def join_experts(state, like):
    out = {}
    for name, value in like.items():
        if name.endswith("experts.gate_up_proj"):
            base = name[: -len("gate_up_proj")]
            out[name] = torch.stack([torch.cat([state[f"{base}{e}.gate_proj.weight"], state[f"{base}{e}.up_proj.weight"]]) for e in range(value.shape[0])])
        elif name.endswith("experts.down_proj"):
            out[name] = torch.stack([state[f"{name[: -len('down_proj')]}{e}.down_proj.weight"] for e in range(value.shape[0])])
        else:
            out[name] = state[name]
    return out


def logits_of(config, state, kind):
    config = type(config)(**{k: v for k, v in config.to_dict().items() if k not in ("quantization_config", "dtype")})
    model = {"llama": transformers.LlamaForCausalLM, "mixture": transformers.Qwen3MoeForCausalLM, "gpt_oss": transformers.GptOssForCausalLM}[kind](config)
    model = model.float().eval()
    model.load_state_dict(join_experts(state, model.state_dict()) if kind == "mixture" else {k: v for k, v in state.items()}, strict=False)
    if kind == "gpt_oss":
        model.set_attn_implementation("eager")  # sdpa has no sinks
    with torch.no_grad():
        return model(torch.tensor([TOKENS])).logits[0].float()


def make(name, variant, folder):
    dtype = variant.get("dtype", torch.float16)
    kind = variant.get("kind", "llama")
    config, model = model_of(kind, dtype)
    state = {k: v.detach().clone() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    if kind == "mixture":
        state = split_experts(state)
    tensors, truth, unpacked = {}, {}, {}
    for key, value in state.items():
        made = variant["write"](key, value) if writers.is_matrix(key, value) else None
        if made is None:
            tensors[key] = value.to(dtype)
            unpacked[key] = value.to(dtype).float()
            continue
        parts, values = made[0], made[1].float()
        tensors.update(parts)
        truth[made[2] if len(made) > 2 else key] = values
        unpacked[key] = made[3] if len(made) > 3 else values
    os.makedirs(folder, exist_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()}, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    written = config.to_dict()
    written["dtype"] = str(dtype).removeprefix("torch.")
    written["architectures"] = [type(model).__name__]
    for stray in ("_name_or_path", "transformers_version"):
        written.pop(stray, None)
    if "config" in variant:
        written["quantization_config"] = variant["config"]
    for other, text in variant.get("files", {}).items():
        with open(os.path.join(folder, other), "w") as file:
            json.dump(text, file, indent=1)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(written, file, indent=1)
    logits = logits_of(config, {**unpacked, "lm_head.weight": unpacked["model.embed_tokens.weight"]}, kind)
    rows = {key: {"shape": list(value.shape), "sha256": hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest(),
                  "first": [float(x) for x in value.flatten()[:6]]} for key, value in truth.items()}
    expected = {"tensors": rows, "tokens": TOKENS, "logits": base64.b64encode(logits.numpy().tobytes()).decode(), "vocabulary": 64}
    expected.update({k: variant[k] for k in ("decoded", "notes") if k in variant})
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file, indent=1)
    print(f"{name}: {len(truth)} weights, {os.path.getsize(os.path.join(folder, 'model.safetensors'))} bytes, logits' deviation {logits.std():.3f}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--to", default=os.path.join(HERE, "checkpoints"))
    given = arguments.parse_args()
    for name, variant in writers.variants().items():
        if given.names and name not in given.names:
            continue
        folder = os.path.join(given.to, name)
        shutil.rmtree(folder, ignore_errors=True)
        make(name, variant, folder)


if __name__ == "__main__":
    sys.exit(main())
