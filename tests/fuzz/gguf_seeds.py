"""Writes small GGUF files into the folder given: one for each kind of value, tensor type and mistake that a fuzzer finds hard to reach."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from gguf_values import U8, U16, U32, I32, F32, STRING, ARRAY, CODES, text, value


def gguf(keys=(), tensors=(), data=b"", version=3, alignment=32):
    """keys: (name, kind, value); tensors: (name, sizes, type, offset)"""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, kind, v in keys:
        out += text(name) + struct.pack("<I", kind) + value(kind, v)
    for name, sizes, kind, offset in tensors:
        out += text(name) + struct.pack("<I", len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes) + struct.pack("<IQ", kind, offset)
    return out + b"\0" * (-len(out) % alignment) + data


SEEDS = {
    "empty": gguf(),
    "version2": gguf([("general.architecture", STRING, "llama")], version=2),
    "numbers": gguf([(f"k{kind}", kind, 1) for kind in CODES]),
    "texts": gguf([("tokenizer.ggml.tokens", ARRAY, (STRING, ["a", "\u2581b", "\"\\\n"])), ("tokenizer.chat_template", STRING, "{{ x }}"),
                   ("tokenizer.ggml.scores", ARRAY, (F32, [0.5, -1.0, float("inf")]))]),
    "nested": gguf([("n", ARRAY, (ARRAY, [(U8, [1, 2]), (STRING, ["x"])]))]),
    "tensors": gguf([("general.alignment", U32, 64)], [("a", [4, 2], 0, 0), ("b", [32], 8, 64), ("c", [256], 12, 128)], b"\1" * 320, 3, 64),
    "ranks": gguf((), [("s", [], 0, 0), ("t", [2, 2, 2, 2], 1, 32)], b"\2" * 64),
    "split": gguf([("split.no", U16, 0), ("split.count", U16, 2), ("split.tensors.count", I32, 1)]),
    "part": gguf([("split.no", U16, 1), ("split.count", U16, 2)]),
    "overlap": gguf((), [("a", [16], 0, 0), ("b", [16], 0, 32)], b"\0" * 128),
    "twice": gguf((), [("a", [4], 0, 0), ("a", [4], 0, 32)], b"\0" * 64),
    "wide": gguf((), [("a", [1 << 33, 1 << 33], 0, 0)], b"\0" * 64),
    "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
}

os.makedirs(sys.argv[1], exist_ok=True)
for name, data in SEEDS.items():
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(data)
