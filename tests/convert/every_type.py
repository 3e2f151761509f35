#!/usr/bin/env python3
"""One small random model written in every type, and the mistakes of `mekik convert`.

    every_type.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
except ImportError:
    print("skipped: numpy or gguf is not installed (test.sh installs them)")
    sys.exit(77)

PROGRAM = sys.argv[1]
WIDTH, FF, VOCAB, LAYERS = 256, 320, 96, 2
# Type: how far its numbers may be off, by root mean square of theirs.
TYPES = {"f32": 0, "f16": 4e-4, "bf16": 3e-3, "q8_0": 8e-3, "q5_1": 0.05, "q5_0": 0.06, "q4_1": 0.09, "q4_0": 0.1, "q6_k": 0.03, "q5_k": 0.05, "q4_k": 0.09,
         "q3_k": 0.2, "q2_k": 0.4, "iq4_nl": 0.1, "nvfp4": 0.12}
# The library gguf cannot read these; they are compared on their way back.
RETURNED = {"q1_0": 0.7, "q2_0": 0.75}
BLOCK_256 = ("q6_k", "q5_k", "q4_k", "q3_k", "q2_k")


def write_model(folder, rng):
    shapes = {"model.embed_tokens.weight": [VOCAB, WIDTH], "model.norm.weight": [WIDTH], "lm_head.weight": [VOCAB, WIDTH]}
    for l in range(LAYERS):
        for name, shape in (("self_attn.q_proj", [WIDTH, WIDTH]), ("self_attn.k_proj", [WIDTH // 2, WIDTH]), ("self_attn.v_proj", [WIDTH // 2, WIDTH]),
                            ("self_attn.o_proj", [WIDTH, WIDTH]), ("mlp.gate_proj", [FF, WIDTH]), ("mlp.up_proj", [FF, WIDTH]), ("mlp.down_proj", [WIDTH, FF]),
                            ("input_layernorm", [WIDTH]), ("post_attention_layernorm", [WIDTH])):
            shapes[f"model.layers.{l}.{name}.weight"] = shape
    header, data = {}, b""
    for name, shape in shapes.items():
        values = rng.standard_normal(shape).astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + data)
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump({"architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "intermediate_size": FF, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "vocab_size": VOCAB, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 128,
                   "hidden_act": "silu", "use_cache": True}, out)


def mekik(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def good(*arguments):
    done = mekik(*arguments)
    assert done.returncode == 0, f"mekik {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def values(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape([int(size) for size in tensor.shape[::-1]])


def check_type(kind, folder, scratch, exact):
    path = os.path.join(scratch, kind + ".gguf")
    report = json.loads(good("convert", folder, "--to", "gguf", "--type", kind, "-o", path, "--json"))
    reader = gguf.GGUFReader(path)
    assert report["tensors"] == len(reader.tensors) == len(exact)
    fallback = 0
    for tensor in reader.tensors:
        expected = "F32" if len(tensor.shape) == 1 else kind.upper()
        if kind in BLOCK_256 and int(tensor.shape[0]) == FF:
            expected, fallback = "F16", fallback + 1
        assert tensor.tensor_type.name == expected, f"{tensor.name} is {tensor.tensor_type.name}, expected {expected}"
        off = np.sqrt(((values(tensor) - exact[tensor.name]) ** 2).mean() / (exact[tensor.name] ** 2).mean())
        bound = 0 if expected == "F32" else 4e-4 if expected == "F16" else TYPES[kind]
        assert off <= bound, f"{tensor.name} as {kind} is off by {off:.3g}, at most {bound}"
    told = [note for note in report["notes"] if "cannot hold" in note]
    assert len(told) == min(fallback, 1) and all(note.startswith(f"{fallback} tensors ") for note in told), report["notes"]
    assert len(json.loads(good("logits", path, "--tokens", "1,2,3", "--json", "--set", "cache.memory=1MiB"))["logits"][0]) == VOCAB


def read_safetensors(folder):
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[slice(*row["data_offsets"])], np.float32).reshape(row["shape"]) for name, row in header.items()}


def check_returned(kind, folder, scratch):
    path, back = os.path.join(scratch, kind + ".gguf"), os.path.join(scratch, kind + "-back")
    good("convert", folder, "--to", "gguf", "--type", kind, "-o", path)
    good("convert", path, "--to", "safetensors", "--type", "f32", "-o", back)
    exact, got = read_safetensors(folder), read_safetensors(back)
    assert exact.keys() == got.keys()
    for name, right in exact.items():
        off = np.sqrt(((got[name] - right) ** 2).mean() / (right ** 2).mean())
        assert off <= (RETURNED[kind] if right.ndim > 1 else 0), f"{name} as {kind} is off by {off:.3g}"
        assert right.ndim == 1 or off > 0.01 or name.endswith("down_proj.weight"), f"{name} is not written as {kind}"


def check_mistakes(folder, scratch):
    there, broken = os.path.join(scratch, "f32.gguf"), os.path.join(scratch, "broken")
    rows = [
        ((folder, "--to", "onnx", "-o", "x"), 2, "--to onnx: choose gguf or safetensors"),
        ((folder, "--to", "gguf"), 2, "--output"),
        ((folder, "--to", "gguf", "-o", there), 1, "f32.gguf: is there already"),
        ((folder, "--to", "safetensors", "-o", broken), 1, "is safetensors already"),
        ((there, "--to", "gguf", "-o", broken), 1, "is gguf already"),
        ((folder, "--to", "gguf", "-o", broken, "--type", "q9_9"), 2, '--type "q9_9": choose one that gguf is written in: f32, f16, bf16, q4_0'),
        ((folder, "--to", "gguf", "-o", broken, "--type", ""), 2, '--type "": choose one that gguf is written in'),
        ((folder, "--to", "gguf", "-o", broken, "--max-shard-mib", "1"), 2, "--max-shard-mib is for --to safetensors"),
        ((folder, "--to", "gguf", "-o", ""), 2, "--output is empty"),
        ((folder, "--to", "gguf", "-o", "-"), 2, "not written to standard output"),
        ((there, "--to", "safetensors", "-o", broken, "--type", "q8_0"), 2, '--type "q8_0": choose one that safetensors is written in: f32, f16, bf16'),
        ((folder, "--to", "gguf", "-o", os.path.join(scratch, "nowhere", "x.gguf")), 1, "cannot be written: No such file"),
        ((os.path.join(scratch, "absent"), "--to", "gguf", "-o", broken), 2, "no such file or folder"),
    ]
    for words, code, said in rows:
        done = mekik("convert", *words)
        assert done.returncode == code and said in done.stderr and done.stderr.count("\n") == 1, (words, done.returncode, done.stderr)
    assert not os.path.exists(broken)
    # What a format has no place for is an error that names it.
    config = os.path.join(folder, "config.json")
    with open(config) as file:
        kept = file.read()
    with open(config, "w") as file:
        json.dump({**json.loads(kept), "hidden_act": "gelu"}, file)
    done = mekik("convert", folder, "--to", "gguf", "-o", broken)
    assert done.returncode == 1 and "would not be the same in the other format: glu" in done.stderr, done.stderr
    assert not os.path.exists(broken)
    with open(config, "w") as file:
        file.write(kept)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "model")
        write_model(folder, np.random.default_rng(1))
        good("convert", folder, "--to", "gguf", "-o", os.path.join(scratch, "plain.gguf"))
        exact = {tensor.name: values(tensor) for tensor in gguf.GGUFReader(os.path.join(scratch, "plain.gguf")).tensors}
        for kind in TYPES:
            check_type(kind, folder, scratch, exact)
            print(f"ok      {kind}")
        for kind in RETURNED:
            check_returned(kind, folder, scratch)
            print(f"ok      {kind}")
        check_mistakes(folder, scratch)
        print("ok      mistakes")
    return 0


sys.exit(main())
