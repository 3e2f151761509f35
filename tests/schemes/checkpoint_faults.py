"""Quantized checkpoints that are damaged, of unknown kinds or labelled wrongly: each gets one line that names the tensor and what to do; and B115,
zero points of GPTQ whose version the label does not tell.

    checkpoint_faults.py SCHEME_TOOL
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed (test.sh installs it)")
    sys.exit(77)

TOOL = sys.argv[1]
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints")
Q = "model.layers.0.self_attn.q_proj."


def read(name):
    """Header and data of a model's file: {tensor: [dtype, shape, bytes]}, and its config.json."""
    folder = os.path.join(HERE, name)
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    header.pop("__metadata__", None)
    tensors = {k: [v["dtype"], v["shape"], data[slice(*v["data_offsets"])]] for k, v in header.items()}
    with open(os.path.join(folder, "config.json")) as file:
        return tensors, json.load(file)


def write(folder, tensors, config):
    header, data = {}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)


def decode(tensors, config):
    """What the program says, or the decoded numbers of the first tensor."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, tensors, config)
        done = subprocess.run([TOOL, "decode", folder, os.path.join(folder, "out")], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            return done.stderr.strip().replace(folder, "FOLDER")
        return np.fromfile(os.path.join(folder, "out.decoded"), np.float32), np.fromfile(os.path.join(folder, "out.factored"), np.float32)


def without(part):
    return lambda tensors, config: tensors.pop(Q + part)


def reshaped(part, shape):
    def change(tensors, config):
        dtype, old, numbers = tensors[Q + part]
        tensors[Q + part] = [dtype, shape, numbers[: len(numbers) // int(np.prod(old)) * int(np.prod(shape))]]
    return change


def index_of(value):
    def change(tensors, config):
        numbers = np.frombuffer(tensors[Q + "g_idx"][2], np.int32).copy()
        numbers[5] = value
        tensors[Q + "g_idx"][2] = numbers.tobytes()
    return change


def rule(**changes):
    return lambda tensors, config: config["quantization_config"].update(changes)


def drop_method(tensors, config):
    config["quantization_config"].pop("quant_method")


def twice(tensors, config):
    tensors[Q + "weight"] = ["F16", [64, 64], bytes(64 * 64 * 2)]


G = 'FOLDER: "model.layers.0.self_attn.q_proj.weight", stored as '
FIRST = 'FOLDER: "model.layers.0.mlp.down_proj.weight", stored as '  # what a rule for all of them fails at
CASES = [
    ("gptq-4-32", without("scales"), G + 'gptq: its part "...scales" is not in the file'),
    ("gptq-4-32", reshaped("scales", [1, 64]), G + f"gptq: {Q}scales has shape [1, 64], not [2, 64]"),
    ("gptq-4-32", reshaped("qzeros", [2, 4]), G + f"gptq: {Q}qzeros has shape [2, 4], not [2, 8]"),
    ("gptq-4-32", index_of(2), G + f"gptq: {Q}g_idx puts column 5 into group 2 of 2"),
    ("gptq-4-32", index_of(-1), G + f"gptq: {Q}g_idx puts column 5 into group -1 of 2"),
    ("gptq-4-32", rule(checkpoint_format="marlin"),
     FIRST + 'gptq: quantization_config: the weights are repacked for "marlin"; formats gptq and gptq_v2 are read, so save it as one of them'),
    ("gptq-4-32", rule(bits=9), FIRST + "gptq: quantization_config: bits 9; 2, 3, 4 and 8 are known"),
    ("gptq-4-32", rule(bits="4"), FIRST + "gptq: quantization_config: bits must be a whole number"),
    ("gptq-4-32", rule(dynamic={"-:(": {}}), FIRST + 'gptq: quantization_config: "(" is no regular expression (at 1)'),
    ("gptq-4-32", twice, f'FOLDER: tensor "{Q}weight" is there both as it is and in parts, stored as gptq'),
    ("gptq-4-32", drop_method, 'FOLDER: config.json: quantization_config has no "quant_method", so nothing says how the weights were quantized'),
    ("gptq-4-32", rule(quant_method="../gptq"), 'FOLDER: config.json: quantization_config names "../gptq", which no scheme is called'),
    ("gptq-4-32", rule(quant_method="hqq"), 'FOLDER: it was quantized by "hqq", which is not read here (have that tool write a plain checkpoint, or take '
     'one of another kind): there is no scheme "hqq"'),
    ("gptq-4-32", rule(quant_method="q8_0"), 'FOLDER: it was quantized by "q8_0", but scheme q8_0 reads single tensors only'),
    ("awq-gemm", rule(version="gemv_fast"),
     FIRST + 'awq: quantization_config: the weights are repacked for "gemv_fast"; gemm and gemv packing are read, so save it as one of them'),
    ("awq-gemm", rule(version="gemv"), FIRST + "awq: model.layers.0.mlp.down_proj.scales has shape [3, 64], not [96, at least 2]"),
    ("awq-gemm", without("qzeros"), G + f"awq: {Q}qweight has no qzeros, though zero_point is set"),
    ("fp8-128", without("weight_scale_inv"), G + f"fp8: {Q}weight has neither weight_scale_inv nor weight_scale beside it"),
    ("fp8-blocks", reshaped("weight_scale_inv", [3, 1]),
     G + f"fp8: {Q}weight_scale_inv has shape [3, 1], which is no grid of 48 x 40 blocks over 64 x 64"),
    ("bnb-int8", reshaped("SCB", [63]), G + f"bitsandbytes: {Q}SCB has shape [63], not [64]"),
    ("bnb-nf4-32", without("weight.absmax"), G + "bitsandbytes: model.layers.0.self_attn.q_proj: one of weight, absmax and quant_state is missing"),
    ("ct-int4-group", without("weight_scale"), G + f"compressed-tensors: {Q}weight_packed has no weight_scale beside it"),
    ("ct-int4-group", rule(sparsity_config={"format": "sparse-24-bitmask"}),
     FIRST + "compressed-tensors: quantization_config: the weights are stored sparse (sparse-24-bitmask); decompress the checkpoint with its own tool first"),
    ("ct-int4-group", rule(format="marlin-24"),
     FIRST + 'compressed-tensors: quantization_config: format "marlin-24" is not read here; decompress the checkpoint with its own tool first'),
]


def field_case(zeros, label):
    """B115: w = (k + n) mod 16 - 8, halved; stored for zero points of one version, called another."""
    codes = (np.arange(8)[:, None] + np.arange(8)[None, :]) % 16
    words = (codes.astype(np.uint64) << (4 * np.arange(8, dtype=np.uint64))[:, None]).sum(0).astype(np.uint32)
    tensors = {"x.qweight": ["I32", [1, 8], words.tobytes()], "x.qzeros": ["I32", [1, 1], np.array([zeros], np.uint32).tobytes()],
               "x.scales": ["F16", [1, 8], np.full(8, 0.5, np.float16).tobytes()]}
    config = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 8, "sym": True, "desc_act": False, "checkpoint_format": label}}
    return decode(tensors, config)


def e4m3(byte):
    sign, exponent, fraction = -1.0 if byte & 128 else 1.0, byte >> 3 & 15, byte & 7
    return sign * (fraction / 8 * 2.0**-6 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7))


def spelled_otherwise():
    """Checkpoints that say the same in other numbers: scales of 4-bit floats as BF16, and a block wider than the matrix."""
    tensors, config = read("ct-nvfp4")
    yield decode(tensors, config)
    for name, (dtype, shape, numbers) in tensors.items():
        if name.endswith("weight_scale"):
            wide = np.array([e4m3(byte) for byte in numbers], np.float32).view(np.uint32) >> 16
            tensors[name] = ["BF16", shape, wide.astype(np.uint16).tobytes()]
    yield decode(tensors, config)
    tensors, config = read("fp8-blocks")
    for name, (dtype, shape, numbers) in tensors.items():
        if name.endswith("weight_scale_inv"):
            rows = tensors[name.removesuffix("_scale_inv")][1][0]
            tensors[name] = ["F32", [rows // 32, 1], np.arange(1, rows // 32 + 1, dtype=np.float32).tobytes()]
    config["quantization_config"]["weight_block_size"] = [32, 96]
    yield decode(tensors, config)
    config["quantization_config"]["weight_block_size"] = [32, 2**62]
    yield decode(tensors, config)


def main():
    bad = []
    same = list(spelled_otherwise())
    for one, other in ((same[0], same[1]), (same[2], same[3])):
        if isinstance(one, str) or isinstance(other, str) or not all(np.array_equal(a, b) for a, b in zip(one, other)):
            bad.append(f"two spellings of one checkpoint are not the same: {one} {other}")
    for name, change, want in CASES:
        tensors, config = read(name)
        change(tensors, config)
        got = decode(tensors, config)
        if not isinstance(got, str) or not got.startswith(want) or "\n" in got:
            bad.append(f"{name}: says {got!r}\n  instead of {want!r}")
    right = ((np.arange(8)[None, :] + np.arange(8)[:, None]) % 16 - 8) * np.float32(0.5)
    for zeros, label in ((0x77777777, "gptq"), (0x88888888, "gptq_v2"), (0x88888888, "gptq"), (0x77777777, "gptq_v2")):
        got = field_case(zeros, label)
        for numbers in got if not isinstance(got, str) else [got]:
            if isinstance(numbers, str) or not np.array_equal(numbers.reshape(8, 8), right):
                bad.append(f"B115, zero points {zeros:x} called {label}: {numbers}")
    print(f"{len(CASES)} faults, 4 labels")
    sys.exit("\n".join(bad) or 0)


main()
