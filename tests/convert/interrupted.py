#!/usr/bin/env python3
"""Conversions that are stopped, killed or run out of space leave nothing that looks whole, and the next one goes through.

    interrupted.py PROGRAM
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed (test.sh installs it)")
    sys.exit(77)

PROGRAM = sys.argv[1]
WIDTH, FF, VOCAB, LAYERS = 512, 2048, 8192, 4


def write_model(folder):
    rng, header, data = np.random.default_rng(1), {}, b""
    shapes = {"model.embed_tokens.weight": [VOCAB, WIDTH], "model.norm.weight": [WIDTH], "lm_head.weight": [VOCAB, WIDTH]}
    for l in range(LAYERS):
        for name, shape in (("self_attn.q_proj", [WIDTH, WIDTH]), ("self_attn.k_proj", [WIDTH, WIDTH]), ("self_attn.v_proj", [WIDTH, WIDTH]),
                            ("self_attn.o_proj", [WIDTH, WIDTH]), ("mlp.gate_proj", [FF, WIDTH]), ("mlp.up_proj", [FF, WIDTH]), ("mlp.down_proj", [WIDTH, FF]),
                            ("input_layernorm", [WIDTH]), ("post_attention_layernorm", [WIDTH])):
            shapes[f"model.layers.{l}.{name}.weight"] = shape
    for name, shape in shapes.items():
        values = rng.standard_normal(shape).astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + data)
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump({"architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "intermediate_size": FF, "num_hidden_layers": LAYERS, "num_attention_heads": 8,
                   "vocab_size": VOCAB, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 128, "hidden_act": "silu"}, out)


def begun(path):
    """Bytes that lie at the place beside the name."""
    part = path + ".mekik-part"
    if os.path.isdir(part):
        return sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(part) for name in names)
    return os.path.getsize(part) if os.path.exists(part) else 0


def ended_by(sign, words, path):
    """Sends `sign` once something is written; whether it came before the end."""
    running = subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and begun(path) < 1 << 20:
        time.sleep(0.001)
    running.send_signal(sign)
    _, said = running.communicate()
    return running.returncode, said


def check(words, path):
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        for attempt in range(20):
            code, said = ended_by(sign, words, path)
            if code != 0:
                break
            remove(path)  # it was faster
        assert code != 0, f"signal {sign} never came in time"
        assert not os.path.exists(path), f"signal {sign} leaves {path}"
        assert sign == signal.SIGKILL or (code == 1 and "stopped" in said and not os.path.exists(path + ".mekik-part")), (sign, code, said)

    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past the limit fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))

    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, preexec_fn=small)
    assert done.returncode == 1 and "cannot be written" in done.stderr, (done.returncode, done.stderr)
    assert not os.path.exists(path) and not os.path.exists(path + ".mekik-part"), f"a full disk leaves {path}"
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert os.path.exists(path) and not os.path.exists(path + ".mekik-part")


def remove(path):
    subprocess.run(["rm", "-rf", path, path + ".mekik-part"], check=True)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder, file, back = (os.path.join(scratch, name) for name in ("model", "made.gguf", "back"))
        write_model(folder)
        check(["convert", folder, "--to", "gguf", "-o", file], file)
        print("ok      to GGUF")
        check(["convert", file, "--to", "safetensors", "-o", back, "--max-shard-mib", "40"], back)
        print("ok      to a folder")
    return 0


sys.exit(main())
