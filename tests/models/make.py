#!/usr/bin/env python3
"""Makes tiny random models of the families in families/*.py with transformers, and what transformers computes with them.

    python make.py [NAME...] [--missing] [--to FOLDER]      NAME is FAMILY or FAMILY-VARIANT; needs torch and transformers

tiny/FAMILY-VARIANT/ has config.json and model.safetensors, as transformers writes them, and expected.npz: `tokens` (the prompt), `logits` [tokens,
vocabulary] and `greedy` (24 tokens) of a decoder; `embedding`, of length 1, or `score` of an encoder. Everything is
computed in F32 with sdpa attention from the folder as it was written, so that the spelling of config.json is part of what is tested. The best token of
each greedy step leads by a hundredth of a standard deviation at least, and some of them differ: a seed that does not do so is passed over.
"""
import argparse
import json
import os
import shutil
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from families import families
from families.base import BASE

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
GREEDY, LEAD, SEEDS = 24, 0.01, 40


class NotTelling(Exception):
    """Numbers that would not show a fault, or show one where there is none."""


def make_config(family, variant):
    """A configuration with the keys that its class knows."""
    config_class = getattr(transformers, family.config)
    known = set(getattr(config_class, "__dataclass_fields__", {})) | set(config_class.attribute_map)
    keys = {**{k: v for k, v in BASE.items() if not known or k in known}, **family.common, **variant.changes}
    return config_class(**{k: v for k, v in keys.items() if v is not None or k in variant.changes})


def randomise(model, seed, variant):
    """Every parameter counts: matrices of about unit gain, norms away from 1 (or 0), biases away from 0."""
    generator = torch.Generator().manual_seed(seed)
    own = {name: value for name, value in model.state_dict().items() if value.is_floating_point()}
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)}
    names = {name: parameter for name, parameter in model.named_parameters()}
    for name, value in own.items():
        if name not in names and "bias" not in name and "scalar" not in name:
            continue  # a constant, such as the beta of xIELU
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
    config.update(variant.add)
    with open(path, "w") as file:
        json.dump(config, file, indent=1, sort_keys=True)
        file.write("\n")


def repack(folder, family):
    path, config_path = os.path.join(folder, "model.safetensors"), os.path.join(folder, "config.json")
    with open(config_path) as file:
        tensors, config = family.repack(load_file(path), json.load(file))
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata={"format": "pt"})
    with open(config_path, "w") as file:
        json.dump(config, file, indent=1, sort_keys=True)
        file.write("\n")


def write_files(folder, variant, seed):
    """What sentence-transformers adds to a folder."""
    generator = torch.Generator().manual_seed(seed)
    for name, content in variant.files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
        if "in_features" in content:
            shape = (content["out_features"], content["in_features"])
            weight = torch.randn(shape, generator=generator) / shape[1] ** 0.5
            save_file({"linear.weight": weight.to(DTYPES[variant.dtype])}, os.path.join(os.path.dirname(path), "model.safetensors"))


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


def pooled(rows, variant):
    """As sentence-transformers does."""
    modes = variant.files.get("1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
    mode = modes.get("pooling_mode") or next(key.removeprefix("pooling_mode_") for key, chosen in modes.items() if chosen is True)
    places = torch.arange(1, len(rows) + 1, dtype=rows.dtype)
    return {"cls": lambda: rows[0], "mean": lambda: rows.mean(0), "max": lambda: rows.max(0).values, "lasttoken": lambda: rows[-1],
            "weightedmean": lambda: (rows * places[:, None]).sum(0) / places.sum(),
            "mean_sqrt_len": lambda: rows.sum(0) / len(rows) ** 0.5}[mode.removesuffix("_tokens").removesuffix("_token")]()


def dense_modules(folder, variant, vector):
    for module in variant.files.get("modules.json", []):
        if module["type"].endswith("Dense"):
            vector = load_file(os.path.join(folder, module["path"], "model.safetensors"))["linear.weight"].float() @ vector
    return vector


def expected_of(folder, family, variant, prompt):
    model = load(folder, family)
    if family.gives == "score":
        return dict(score=model(torch.tensor([prompt])).logits[0].numpy())
    if family.gives == "embedding":
        rows = getattr(model, "model", model)(torch.tensor([prompt])).last_hidden_state[0]
        vector = dense_modules(folder, variant, pooled(rows, variant))
        return dict(embedding=(vector / vector.norm()).numpy())
    logits = model(torch.tensor([prompt]), use_cache=False).logits[0]
    assert torch.isfinite(logits).all(), folder
    made = [] if variant.grows else greedy(model, prompt, logits, variant.different)
    return dict(logits=logits.numpy(), greedy=np.array(made, np.int32))


def make(name, family, variant, to):
    folder = os.path.join(to, name)
    for seed in range(variant.seed, variant.seed + SEEDS):
        shutil.rmtree(folder, ignore_errors=True)
        config = make_config(family, variant)  # anew: saving a model changes it
        torch.manual_seed(seed)  # what randomise adds to is random, too, in some models
        model = getattr(transformers, family.model)(config)
        randomise(model, seed, variant)
        kept = {path: value.clone() for path, value in model.named_buffers() if path.endswith(family.kept)}
        model = model.to(DTYPES[variant.dtype])
        for path, value in kept.items():
            model.get_submodule(path.rpartition(".")[0]).register_buffer(path.rpartition(".")[2], value)
        save(model, folder, variant)
        write_files(folder, variant, seed)
        vocabulary = config.get_text_config().vocab_size
        prompt = np.random.RandomState(seed).randint(3, vocabulary, variant.prompt).tolist()
        try:
            expected = expected_of(folder, family, variant, prompt)
        except NotTelling as why:
            last = why
            continue
        if family.repack:
            repack(folder, family)
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


if __name__ == "__main__":
    main()
