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


def weights(**changes):
    return lambda tensors, config: config["quantization_config"]["config_groups"]["group_0"]["weights"].update(changes)


def group(**changes):
    return lambda tensors, config: config["quantization_config"]["config_groups"]["group_0"].update(changes)


def cast(part, dtype, shape):
    def change(tensors, config):
        tensors[Q + part] = [dtype, shape, bytes(int(np.prod(shape)))]
    return change


def longer(part, times=2):
    def change(tensors, config):
        dtype, shape, numbers = tensors[Q + part]
        tensors[Q + part] = [dtype, [(shape[0] if shape else 1) * times, *shape[1:]], numbers * times]
    return change


def modelopt(change):
    """What hf_quant_config.json says, in config.json."""
    def both(tensors, config):
        config["quantization_config"] = {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}
        change(tensors, config)
    return both


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

C = "compressed-tensors: "
K = C + "quantization_config: "
CASES += [
    # parts that the configuration says are there
    ("gptq-4-act-order", without("g_idx"), G + f"gptq: {Q}qweight has no g_idx beside it, though desc_act is set: which group an input is of is not known"),
    ("gptq-4-32", rule(desc_act="x"), FIRST + "gptq: quantization_config: desc_act must be true or false"),
    ("ct-int4-zeros", without("weight_zero_point"), G + C + f"{Q}weight_scale has no weight_zero_point beside it, though symmetric is false"),
    ("ct-int3-channel", without("weight_zero_point"), G + C + f"{Q}weight_scale has no weight_zero_point beside it, though symmetric is false"),
    ("ct-w8-zeros", without("weight_zero_point"), G + C + f"{Q}weight_scale has no weight_zero_point beside it, though symmetric is false"),
    ("ct-int4-group", weights(actorder="group"), FIRST + C + "model.layers.0.mlp.down_proj.weight_scale has no weight_g_idx beside it, though actorder is \"group\""),
    # shapes and types
    ("gptq-4-32", longer("qweight"), G + f"gptq: {Q}qweight [16, 64] does not hold 64 inputs of 4 bits"),
    ("ct-nvfp4", longer("weight_global_scale"), G + C + f"{Q}weight_global_scale has shape [2], not [1]"),
    ("modelopt-nvfp4", modelopt(longer("weight_scale_2")), G + f"modelopt: {Q}weight_scale_2 has shape [2], not [1]"),
    ("modelopt-nvfp4", modelopt(cast("weight_scale", "F8_E4M3", [])), G + f"modelopt: {Q}weight_scale has shape [1], which is no grid of 1 x 16 blocks over 64 x 64"),
    ("fp8-128", longer("weight_scale_inv"), G + f"fp8: {Q}weight_scale_inv has shape [2, 1], which is no grid of 64 x 64 blocks over 64 x 64"),
    ("fp8-128", rule(weight_block_size=[128, 7]), FIRST + "fp8: model.layers.0.mlp.down_proj.weight_scale_inv has shape [1, 1], which is no grid of 64 x 7 blocks over 64 x 96"),
    ("fp8-128", cast("weight_scale_inv", "U8", [1, 1]), G + f"fp8: {Q}weight_scale_inv must hold float numbers"),
    ("ct-nvfp4", cast("weight_scale", "U8", [64, 4]), G + C + f"{Q}weight_scale must hold float numbers"),
    ("ct-nvfp4", cast("weight_scale", "BOOL", [64, 4]), G + C + f"{Q}weight_scale must hold float numbers"),
    # words of the configuration
    ("bnb-nf4", rule(bnb_4bit_quant_type="fp4"),
     FIRST + 'bitsandbytes: model.layers.0.mlp.down_proj.weight.quant_state.bitsandbytes__nf4 contradicts quantization_config, where bnb_4bit_quant_type is "fp4"'),
    ("bnb-nf4", rule(bnb_4bit_quant_type="x"), FIRST + 'bitsandbytes: quantization_config: bnb_4bit_quant_type is "x", which is none of nf4, fp4'),
    ("bnb-nf4", rule(load_in_8bit=True),
     FIRST + "bitsandbytes: model.layers.0.mlp.down_proj.weight.quant_state.bitsandbytes__nf4 is of 4 bits, but quantization_config says load_in_8bit"),
    ("bnb-int8", rule(load_in_4bit=True), FIRST + "bitsandbytes: model.layers.0.mlp.down_proj.weight holds 8 bits, but quantization_config says load_in_4bit"),
    ("fp8-128", rule(fmt="x"), FIRST + 'fp8: quantization_config: fmt is "x", which is none of e4m3, e5m2'),
    ("fp8-128", rule(fmt="e5m2"), FIRST + "fp8: model.layers.0.mlp.down_proj.weight holds other 8-bit floats than fmt of quantization_config says"),
    ("fp8-128", rule(activation_scheme="x"), FIRST + 'fp8: quantization_config: activation_scheme is "x", which is none of dynamic, static'),
    ("ct-int4-group", weights(type="x"), FIRST + K + 'type is "x", which is none of int, float'),
    ("ct-int4-group", weights(type="float"), FIRST + C + 'model.layers.0.mlp.down_proj.weight_packed holds integers, but type of quantization_config is "float"'),
    ("ct-int4-group", weights(strategy="x"), FIRST + K + 'strategy is "x", which is none of tensor, channel, group, block, tensor_group, token, attn_head'),
    ("ct-int4-group", rule(quantization_status="x"), FIRST + K + 'quantization_status is "x", which is none of compressed, frozen, calibration, initialized, decompressed'),
    ("ct-int4-group", group(targets="x"), FIRST + K + "targets must be a list of texts"),
    ("ct-int4-group", rule(ignore=5), FIRST + K + "ignore must be a list of texts"),
    ("ct-int4-group", rule(kv_cache_scheme=7), FIRST + K + "kv_cache_scheme must be an object"),
    ("ct-int4-group", group(input_activations=7), FIRST + K + "input_activations must be an object"),
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
