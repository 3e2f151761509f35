#!/usr/bin/env python3
"""Makes tiny random models of the families in families/*.py with transformers, and what transformers computes with them.

    python make.py [NAME...] [--missing] [--to FOLDER]      NAME is FAMILY or FAMILY-VARIANT; needs torch and transformers

tiny/FAMILY-VARIANT/ has config.json and model.safetensors, as transformers writes them, and expected.npz: `tokens` (the prompt), `logits` [tokens,
vocabulary] and `greedy` (24 tokens) of a decoder; `hidden` [tokens, width], `embedding` and `score` of an encoder, where it has them. Everything is
computed in F32 with sdpa attention from the folder as it was written, so that the spelling of config.json is part of what is tested. The best token of
each greedy step leads by a hundredth of a standard deviation at least, and some of them differ: a seed that does not do so is passed over.
"""
import argparse
import contextlib
import importlib
import json
import os
import shutil
import sys

import numpy as np
import torch
import transformers

from families.base import BASE

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = ["dense", "mixtures", "hybrids", "encoders"]
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
GREEDY, LEAD, SEEDS = 24, 0.01, 40


class NotTelling(Exception):
    """Numbers that would not show a fault, or show one where there is none."""


def families():
    out = {}
    for table in TABLES:
        with contextlib.suppress(ModuleNotFoundError):
            out.update(importlib.import_module(f"families.{table}").FAMILIES)
    return out


def make_config(family, variant):
    """A configuration with the keys that its class knows."""
    config_class = getattr(transformers, family.config)
    known = set(getattr(config_class, "__dataclass_fields__", {})) | set(config_class.attribute_map)
    keys = {**{k: v for k, v in BASE.items() if not known or k in known}, **family.common, **variant.changes}
    return config_class(**{k: v for k, v in keys.items() if v is not None or k in variant.changes})


def randomise(model, seed, variant):
    """Every parameter counts: matrices of about unit gain, norms away from 1 (or 0), biases away from 0."""
    generator = torch.Generator().manual_seed(seed)
    own = {name: value for name, value in model.state_dict().items() if value.is_floating_point() and value.dim() > 0}
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)}
    names = {name: parameter for name, parameter in model.named_parameters()}
    for name, value in own.items():
        noise = torch.randn(value.shape, generator=generator)
        if id(names.get(name)) in embeddings:
            value.copy_(noise * variant.embed)
        elif value.dim() >= 2:
            turned = type(model.get_submodule(name.rpartition(".")[0])).__name__ == "Conv1D"  # GPT-2's [inputs, outputs]
            value.copy_(noise * variant.gain / value.shape[0 if turned else -1] ** 0.5)
        elif "bias" in name:
            value.copy_(noise * 0.3)
        else:
            value.add_(noise * 0.3)


def respell(config):
    """config.json as transformers 4 wrote it."""
    config["torch_dtype"] = config.pop("dtype", "float32")
    config.pop("layer_types", None)
    rope = config.pop("rope_parameters", None) or {}
    if "full_attention" in rope:  # a table for each kind of layer
        local, rope = rope.get("sliding_attention"), rope["full_attention"]
        if local is not None:
            config["rope_local_base_freq"] = local["rope_theta"]
    rope = dict(rope)
    if "rope_theta" in rope:
        config["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if rope.get("rope_type", "default") != "default":
        config["rope_scaling"] = rope
    return config


def save(model, folder, variant):
    model.save_pretrained(folder)
    os.chmod(os.path.join(folder, "model.safetensors"), 0o644)
    for name in os.listdir(folder):
        if name not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(folder, name))
    path = os.path.join(folder, "config.json")
    with open(path) as file:
        config = json.load(file)
    config.pop("transformers_version", None)
    config = respell(config) if variant.v4 else config
    for key in variant.drop:
        config.pop(key, None)
    with open(path, "w") as file:
        json.dump(config, file, indent=1, sort_keys=True)
        file.write("\n")


def greedy(model, prompt, logits, least):
    """One token after the other, each from the whole sequence: what state must equal."""
    tokens, made, spread = list(prompt), [], float(logits.std())
    for _ in range(GREEDY):
        last = model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
        best, second = last.topk(2).values.tolist()
        if best - second < LEAD * spread:
            raise NotTelling(f"a lead of {(best - second) / spread:.4f} after {len(made)}")
        made.append(int(last.argmax()))
        tokens.append(made[-1])
    if len(set(made)) < least:
        raise NotTelling(f"made {made}")
    return made


def load(folder, family):
    """In F32, with sdpa: eager attention adds ALiBi twice. Models with capped scores have eager attention only."""
    own = getattr(transformers, family.model)
    try:
        return own.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    except ValueError:
        return own.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def expected_of_decoder(folder, family, variant, prompt):
    model = load(folder, family)
    logits = model(torch.tensor([prompt]), use_cache=False).logits[0]
    assert torch.isfinite(logits).all(), folder
    return dict(logits=logits.numpy(), greedy=np.array(greedy(model, prompt, logits, variant.different), np.int32))


def make(name, family, variant, to):
    folder = os.path.join(to, name)
    for seed in range(variant.seed, variant.seed + SEEDS):
        shutil.rmtree(folder, ignore_errors=True)
        config = make_config(family, variant)  # anew: saving a model changes it
        model = getattr(transformers, family.model)(config)
        randomise(model, seed, variant)
        save(model.to(DTYPES[variant.dtype]), folder, variant)
        vocabulary = config.get_text_config().vocab_size
        prompt = np.random.RandomState(seed).randint(3, vocabulary, variant.prompt).tolist()
        try:
            expected = getattr(family, "expected", expected_of_decoder)(folder, family, variant, prompt)
        except NotTelling as why:
            last = why
            continue
        np.savez_compressed(os.path.join(folder, "expected.npz"), tokens=np.array(prompt, np.int32), **expected)
        size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
        print(f"{name}: seed {seed}, {size >> 10} KiB", *(f"{key} {value.std():.2f} wide" for key, value in expected.items() if key != "greedy"), flush=True)
        return
    raise RuntimeError(f"{name}: no seed tells anything ({last}); give the variant another gain")


@torch.no_grad()
def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--missing", action="store_true", help="only those that are not there yet")
    arguments.add_argument("--to", default=os.path.join(HERE, "tiny"))
    given = arguments.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = []
    for name, family in families().items():
        for kind, variant in family.variants.items():
            full = f"{name}-{kind}"
            if given.names and name not in given.names and full not in given.names:
                continue
            if not given.missing or not os.path.exists(os.path.join(given.to, full, "expected.npz")):
                try:
                    make(full, family, variant, given.to)
                except Exception as fault:
                    failed.append(full)
                    print(f"{full}: {type(fault).__name__}: {str(fault)[:300]}", flush=True)
    sys.exit(f"failed: {failed}" if failed else 0)


main()
