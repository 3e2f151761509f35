"""Shared by the scheme tests. Exit code 77: what the test needs is not on this machine."""
import os
import struct
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
         "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0",
         "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"]
TOOL = sys.argv[1]
# What the package does not know: number, values and bytes of a block.
LATER = {"Q2_0": (42, 64, 18)}


def sizes(name):
    return LATER[name][1:] if name in LATER else gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]


def split(blocks, width, bits):
    """F16 scales [n][1] and codes [n][values] of blocks that start with the scale, codes from the low bits up."""
    blocks = np.ascontiguousarray(blocks).reshape(-1, width)
    codes = (blocks[:, 2:, None] >> np.arange(0, 8, bits, dtype=np.uint8)) & (2 ** bits - 1)
    return blocks[:, :2].copy().view(np.float16).astype(np.float32), codes.reshape(len(blocks), -1).astype(np.int32)


def dequantize(blocks, name):
    with np.errstate(all="ignore"):
        if name == "Q1_0":
            d, q = split(blocks, 18, 1)
            return np.where(q == 1, d, -d).reshape(len(blocks), -1)
        if name == "Q2_0":
            d, q = split(blocks, 18, 2)
            return (d * (q - 1).astype(np.float32)).reshape(len(blocks), -1)
        return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name]).astype(np.float32)


def write_gguf(path, tensors):
    """tensors: (name, type, blocks as uint8 [rows][bytes of a row])"""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + text("general.architecture") + struct.pack("<I", 8) + text("llama")
    at = 0
    for name, kind, blocks in tensors:
        elems, size = sizes(kind)
        number = LATER[kind][0] if kind in LATER else gguf.GGMLQuantizationType[kind]
        head += text(name) + struct.pack("<IQQIQ", 2, blocks.shape[1] // size * elems, blocks.shape[0], number, at)
        at += (blocks.nbytes + 31) // 32 * 32
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        for _, _, blocks in tensors:
            file.write(blocks.tobytes() + bytes(-blocks.nbytes % 32))


def run(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")


def decode(folder, tensors):
    """All tensors through the plugins: a list of (decoded, decoded from the form), flat."""
    path = os.path.join(folder, "blocks.gguf")
    write_gguf(path, tensors)
    run("decode", path, os.path.join(folder, "out"))
    flat = [np.fromfile(os.path.join(folder, "out." + way), dtype=np.float32) for way in ("decoded", "factored")]
    result, at = [], 0
    for _, kind, blocks in tensors:
        elems, size = sizes(kind)
        count = blocks.size // size * elems
        result.append((flat[0][at:at + count], flat[1][at:at + count]))
        at += count
    assert at == flat[0].size == flat[1].size
    return result


def same_bits(a, b):
    """Equal to the bit; any NaN equals any NaN."""
    return a.size == b.size and bool(np.all((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))))


def folder():
    return tempfile.TemporaryDirectory()
