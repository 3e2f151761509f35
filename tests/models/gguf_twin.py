"""Writes the GGUF file that llama.cpp's converter makes of a tiny folder, from the recipe in its gguf.json (made by gguf_recipe.py)."""
import json
import os
import struct

import numpy as np

DTYPES = {"F32": np.float32, "F16": np.float16}


def there(folder):
    return os.path.exists(os.path.join(folder, "gguf.json"))


def read_safetensors(path):
    """name: (dtype, values in F32)."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(data[begin:end], np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif entry["dtype"] in DTYPES:
            values = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).astype(np.float32)
        else:
            values = np.frombuffer(data[begin:end], np.int64).astype(np.float32)
        out[name] = (entry["dtype"], values.reshape(entry["shape"]))
    return out


def places(start, loops):
    """The flat indices of nested loops, each [count, step], the outermost first."""
    out = np.array([start], np.int64)
    for count, step in loops:
        out = (out[:, None] + np.arange(count, dtype=np.int64) * step).reshape(-1)
    return out


def tensor(row, weights):
    """The values of one row of a recipe: literal ones, a whole weight, or pieces of weights one after the other."""
    if "literal" in row:
        return np.array(row["literal"], np.float32).reshape(row["shape"])
    parts = [[row["from"], 0, None]] if isinstance(row["from"], str) else row["from"]
    flat = np.concatenate([weights[name][1].reshape(-1)[slice(None) if loops is None else places(start, loops)] for name, start, loops in parts])
    if row.get("value") == "1 + w":
        flat = np.float32(1) + flat
    elif row.get("value") == "-exp(w)":
        flat = -np.exp(flat)
    return flat.reshape(row["shape"])


def add_value(writer, key, value):
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        (writer.add_uint32 if value >= 0 else writer.add_int32)(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def write(folder, path):
    import gguf

    with open(os.path.join(folder, "gguf.json")) as file:
        recipe = json.load(file)
    weights = {}
    for part in sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".safetensors")):
        prefix = os.path.relpath(os.path.dirname(part), folder)
        weights.update({(name if prefix == "." else f"{prefix}/{name}"): value for name, value in read_safetensors(part).items()})
    writer = gguf.GGUFWriter(path, recipe["architecture"])
    for key, value in recipe["metadata"].items():
        add_value(writer, key, value)
    for row in recipe["tensors"]:
        kind = gguf.GGMLQuantizationType[row["type"]]
        writer.add_tensor(row["name"], gguf.quants.quantize(tensor(row, weights), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
