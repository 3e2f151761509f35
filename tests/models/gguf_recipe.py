#!/usr/bin/env python3
"""Finds out what llama.cpp's converter does with the tiny folders, and writes it down as tiny/NAME/gguf.json, for gguf_twin.py.

    python gguf_recipe.py LLAMA_CPP [NAME...] [--missing] [--models FOLDER]       LLAMA_CPP: a checkout; needs torch and transformers

The converter is run on a copy of the folder whose weights are numbered: the values in its tensors then say which weight each of them was. The
tokenizer is left out; the metadata of the model is kept as it is.
"""
import argparse
import json
import logging
import os
import pathlib
import shutil
import sys
import tempfile

import numpy as np

import gguf_twin
from families import families

HERE = os.path.dirname(os.path.abspath(__file__))
TINY = os.path.join(HERE, "tiny")
STEP = 4  # between numbers, so that what is added to a weight can be seen


def loops_of(indices):
    """(start, [[count, step], ...]) of flat indices, or None where they are no nest of loops."""
    loops = []
    while len(indices) > 1:
        steps = np.diff(indices)
        odd = np.nonzero(steps != steps[0])[0]
        count = len(indices) if len(odd) == 0 else int(odd[0]) + 1
        if len(indices) % count != 0:
            return None
        rows = indices.reshape(-1, count)
        if not (rows - rows[:, :1] == rows[0] - rows[0, 0]).all():
            return None
        loops.insert(0, [count, int(steps[0])])
        indices = rows[:, 0]
    return int(indices[0]), loops


def pieces(indices, owner, starts, names):
    """Runs of one owner, each as loops; a run that is none is cut where its steps change."""
    out, at = [], 0
    cuts = np.concatenate([[0], np.nonzero(np.diff(owner))[0] + 1, [len(owner)]])
    for begin, end in zip(cuts[:-1], cuts[1:]):
        at = begin
        while at < end:
            size, found = end - at, None
            while found is None:
                found = loops_of(indices[at:at + size])
                size = size if found else size // 2
            name = names[owner[at]]
            out.append([name, found[0] - int(starts[owner[at]]), found[1]])
            at += size
    return out


class Numbered:
    """A copy of a folder whose weights are numbers: 0, STEP, 2 * STEP, ... through all of its tensors."""

    def __init__(self, folder, to):
        import torch
        from safetensors.torch import load_file, save_file

        shutil.copytree(folder, to, dirs_exist_ok=True)
        self.names, self.sizes, self.starts, count = [], [], [], 0
        for part in sorted(str(p) for p in pathlib.Path(to).rglob("*.safetensors")):
            prefix = os.path.relpath(os.path.dirname(part), to)
            tensors = load_file(part)
            for name, value in tensors.items():
                self.names.append(name if prefix == "." else f"{prefix}/{name}")
                self.starts.append(count)
                self.sizes.append(value.numel())
                tensors[name] = (STEP * torch.arange(count + 1, count + 1 + value.numel(), dtype=torch.float32)).reshape(value.shape)
                count += value.numel()
            save_file(tensors, part, metadata={"format": "pt"})
        self.count, self.starts = count, np.array(self.starts)
        assert STEP * count < 2**24, "more weights than F32 has whole numbers"

    def row(self, values):
        """How a converted tensor comes from the weights, or None where it does not."""
        flat = np.asarray(values, np.float64).reshape(-1)
        if not np.isfinite(flat).all() or (flat < STEP).any() or (flat % STEP != flat[0] % STEP).any() or flat[0] % STEP not in (0, 1):
            return None
        indices = (flat // STEP).astype(np.int64) - 1
        if indices.max() >= self.count:
            return None
        owner = np.searchsorted(self.starts, indices, side="right") - 1
        parts = pieces(indices, owner, self.starts, self.names)
        whole = len(parts) == 1 and parts[0][1:] == [0, [[len(flat), 1]]] and self.sizes[owner[0]] == len(flat)
        row = {"from": parts[0][0] if whole else parts}
        return {**row, "value": "1 + w"} if flat[0] % STEP == 1 else row


def older(hparams):
    """With the keys that the converter wants and transformers 5 no longer writes."""
    rope = hparams.get("rope_parameters") or {}
    hparams.setdefault("n_ctx", hparams.get("n_positions"))
    hparams.setdefault("seq_length", hparams.get("max_position_embeddings", 128))
    hparams.setdefault("activation_function", hparams.get("hidden_act"))
    hparams.setdefault("rotary_pct", rope.get("partial_rotary_factor", 1.0))
    if hparams.get("multi_query") and not hparams.get("new_decoder_architecture"):
        hparams["num_kv_heads"] = 1
    if "llama_4_scaling_beta" in rope:
        rope.setdefault("mscale_all_dim", 1.0)
    names = {"MptForCausalLM": "MPTForCausalLM", "PhimoeForCausalLM": "PhiMoEForCausalLM", "BailingHybridForCausalLM": "BailingMoeV3ForCausalLM",
             "MiniMaxForCausalLM": "MiniMaxText01ForCausalLM"}
    hparams["architectures"] = [names.get(name, name) for name in hparams["architectures"]]
    if hparams["architectures"] == ["GraniteMoeHybridForCausalLM"]:
        hparams["layer_types"] = ["attention" if kind == "full_attention" else "mamba" for kind in hparams["layer_types"]]
    return hparams


def forget_tokenizers(kind):
    kind.set_vocab = kind._get_suppress_tokens = lambda self: None
    for more in kind.__subclasses__():
        forget_tokenizers(more)


def convert(folder, out, kind, dense):
    """Runs the converter without a tokenizer. Returns None where it does not know the family."""
    import gguf
    from conversion import ModelBase, ModelType, TextModel, get_model_architecture, get_model_class

    logging.disable(logging.WARNING)
    with open(os.path.join(folder, "config.json")) as file:
        raw = json.load(file)
    own_code = raw["model_type"] in ("nomic_bert", "mimo_v2_flash", "bailing_hybrid", "minimax")  # their keys are not those that transformers knows
    hparams = older(raw if own_code else ModelBase.load_hparams(pathlib.Path(folder), False))
    try:
        model_class = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    except NotImplementedError:
        return None
    forget_tokenizers(TextModel)
    if hasattr(model_class, "no_mtp"):
        model_class.no_mtp = True  # transformers leaves these layers out
    for name in ("module_paths", "_alpha_n", "_alpha_p", "_beta", "_eps"):  # what the last model left there
        if name in vars(model_class):
            setattr(model_class, name, type(vars(model_class)[name])())
    types = {"F32": gguf.LlamaFileType.ALL_F32, "F16": gguf.LlamaFileType.MOSTLY_F16, "BF16": gguf.LlamaFileType.MOSTLY_BF16}
    made = model_class(pathlib.Path(folder), types[kind], pathlib.Path(out), eager=True, sentence_transformers_dense_modules=dense, hparams=hparams)
    made.write()
    return gguf.GGUFReader(out)


def metadata_of(reader):
    out = {}
    for key, field in reader.fields.items():
        if key.startswith(("GGUF.", "tokenizer.", "general.")):
            continue
        value = field.contents()
        out[key] = [float(np.float32(v)) if isinstance(v, float) else v for v in value] if isinstance(value, list) else value
    return out


def by_value(values, weights):
    """A tensor that is a function of one weight: -exp(w)."""
    for name, (_, weight) in weights.items():
        if weight.size == values.size and np.array_equal(-np.exp(weight.reshape(-1)), values.reshape(-1)):
            return {"from": name, "value": "-exp(w)"}
    return {"literal": [float(v) for v in values.reshape(-1)]}


def vocabulary(folder):
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    return config.get("text_config", config)["vocab_size"]


def drop(folder, ends):
    """Constants that transformers keeps beside the weights."""
    from safetensors.torch import load_file, save_file

    path = os.path.join(folder, "model.safetensors")
    save_file({name: value for name, value in load_file(path).items() if not name.endswith(ends)}, path, metadata={"format": "pt"})


def recipe(folder, computed):
    from gguf.quants import dequantize

    weights = gguf_twin.read_safetensors(os.path.join(folder, "model.safetensors"))
    dtypes = [dtype for dtype, _ in weights.values()]
    kind = max(set(dtypes), key=dtypes.count)
    dense = os.path.exists(os.path.join(folder, "modules.json"))
    with tempfile.TemporaryDirectory() as scratch:
        real = shutil.copytree(folder, os.path.join(scratch, "real"))
        if computed:
            drop(real, computed)
        with open(os.path.join(real, "tokenizer.json"), "w") as file:  # some families are converted by their tokenizer's size
            json.dump({"model": {"type": "WordPiece", "vocab": {str(n): n for n in range(vocabulary(folder))}}, "added_tokens": []}, file)
        reader = convert(real, os.path.join(scratch, "real.gguf"), kind, dense)
        if reader is None:
            return None
        values_of = {t.name: (t.tensor_type, np.asarray(dequantize(t.data, t.tensor_type), np.float32).reshape([int(n) for n in t.shape[::-1]])) for t in reader.tensors}
        numbered = Numbered(real, os.path.join(scratch, "numbered"))
        other = convert(os.path.join(scratch, "numbered"), os.path.join(scratch, "numbered.gguf"), "F32", dense)
        numbers = {t.name: np.asarray(t.data) for t in other.tensors}
        tensors = []
        for name, (type_, values) in values_of.items():
            row = numbered.row(numbers[name]) or by_value(values, weights)
            tensors.append({"name": name, "type": type_.name, "shape": list(values.shape), **row})
        made = {"architecture": reader.fields["general.architecture"].contents(), "metadata": metadata_of(reader), "tensors": tensors}
    return made


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("llama")
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--missing", action="store_true", help="only those that have no gguf.json yet")
    arguments.add_argument("--models", default=TINY, help="the folder of the models, by default tiny/")
    given = arguments.parse_args()
    sys.path[1:1] = [given.llama, os.path.join(given.llama, "gguf-py")]  # its own gguf goes before an installed one
    kept = {f"{family}-{kind}": row.kept for family, row in families().items() for kind in row.variants}
    lost = {f"{family}-{kind}": variant.lost for family, row in families().items() for kind, variant in row.variants.items()}
    for name in sorted(os.listdir(given.models)):
        folder = os.path.join(given.models, name)
        if given.names and name not in given.names and name.split("-")[0] not in given.names or given.missing and gguf_twin.there(folder):
            continue
        if lost.get(name):
            print(f"{name}: GGUF loses {lost[name]}")
            continue
        try:
            made = recipe(folder, kept[name])
        except Exception as why:
            print(f"{name}: the converter cannot: {type(why).__name__}: {str(why)[:200]}")
            continue
        if made is None:
            print(f"{name}: the converter does not know it")
            continue
        rows = ",\n".join(json.dumps(row) for row in made["tensors"])
        with open(os.path.join(folder, "gguf.json"), "w") as file:
            file.write(f'{{"architecture": {json.dumps(made["architecture"])}, "metadata": {json.dumps(made["metadata"])}, "tensors": [\n{rows}\n]}}\n')
        print(f"{name}: {len(made['tensors'])} tensors, {sum('literal' in row for row in made['tensors'])} of them literal", flush=True)


main()
