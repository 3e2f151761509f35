"""Shared by the scheme tests. Exit code 77: what the test needs is not on this machine."""
import os
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
TOOL = sys.argv[1]


def sizes(name):
    return gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]


def dequantize(blocks, name):
    with np.errstate(all="ignore"):
        return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name]).astype(np.float32)


def write_gguf(path, tensors):
    """tensors: (name, type, blocks as uint8 [rows][bytes of a row])"""
    writer = gguf.GGUFWriter(path, "llama")
    for name, kind, blocks in tensors:
        writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


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
