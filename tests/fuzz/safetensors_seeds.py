"""Writes small safetensors files into the folder given: one for each kind of header and mistake that a fuzzer finds hard to reach."""
import json
import os
import sys


def file(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


SEEDS = {
    "none": file({}),
    "one": file({"a": tensor("F32", [2, 2], 0, 16)}, b"\1" * 16),
    "metadata": file({"__metadata__": {"format": "pt"}, "a": tensor("BF16", [2], 0, 4)}, b"\1" * 4),
    "unordered": file({"b": tensor("U8", [3], 4, 7), "a": tensor("I32", [1], 0, 4)}, b"\1" * 7),
    "scalar": file({"s": tensor("F64", [], 0, 8), "e": tensor("F16", [0, 3], 8, 8)}, b"\1" * 8),
    "ranks": file({"a": tensor("I8", [1, 2, 1, 2, 2, 1], 0, 8)}, b"\1" * 8),
    "padded": file(b'{"a":{"shape":[1],"data_offsets":[0,1],"dtype":"BOOL"}}    ', b"\1"),
    "types": file({d: tensor(d, [0], 0, 0) for d in ("F8_E4M3", "F8_E5M2", "F8_E8M0", "I16", "U16", "U32", "I64", "U64")}),
    "twice": file(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\1"),
    "hole": file({"a": tensor("U8", [1], 1, 2)}, b"\1\1"),
    "overlap": file({"a": tensor("U8", [2], 0, 2), "b": tensor("U8", [2], 1, 3)}, b"\1\1\1"),
    "wide": file({"a": tensor("U8", [1 << 33, 1 << 33], 0, 1)}, b"\1"),
    "escapes": file(b'{"a\\u00e9\\ud83d\\ude00":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\1"),
    "deep": file(b'{"a":' + b"[" * 100),
    "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
}

os.makedirs(sys.argv[1], exist_ok=True)
for name, data in SEEDS.items():
    with open(os.path.join(sys.argv[1], name), "wb") as out:
        out.write(data)
