"""A sharded folder of half a GiB is loaded in little more memory than its weights take.

memory.py PROGRAM: writes a random Llama of BF16 numbers, asks for its logits with a small cache, and looks at the peak of the process, which
is to be at most 1.1 times the larger of file and packed weights.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
WIDTH, FF, HEADS, KV_HEADS, LAYERS, VOCAB, SHARDS = 1024, 4096, 16, 4, 16, 32000, 5


def tensors(width, ff, layers, vocab):
    head = width // HEADS
    yield "model.embed_tokens.weight", [vocab, width]
    for l in range(layers):
        for name, shape in (("self_attn.q_proj", [width, width]), ("self_attn.k_proj", [KV_HEADS * head, width]), ("self_attn.v_proj", [KV_HEADS * head, width]),
                            ("self_attn.o_proj", [width, width]), ("mlp.gate_proj", [ff, width]), ("mlp.up_proj", [ff, width]), ("mlp.down_proj", [width, ff]),
                            ("input_layernorm", [width]), ("post_attention_layernorm", [width])):
            yield f"model.layers.{l}.{name}.weight", shape
    yield "model.norm.weight", [width]
    yield "lm_head.weight", [vocab, width]


def numbers(count, rng):
    """BF16 of about 0.01 to 0.03, either sign."""
    out = bytearray(2 * count)
    out[0::2] = rng.randbytes(count)
    out[1::2] = rng.randbytes(count).translate(bytes(0x3C | (i & 0x80) for i in range(256)))
    return bytes(out)


def write_shard(path, chosen, rng):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    sizes = []
    for name, shape in chosen:
        count = 1
        for size in shape:
            count *= size
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * count]}
        sizes.append(count)
        at += 2 * count
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for count in sizes:
            out.write(numbers(count, rng))
    return at


def write_model(folder, width, ff, layers, vocab):
    """Its bytes of weights."""
    os.mkdir(folder)
    rng, every = random.Random(1), list(tensors(width, ff, layers, vocab))
    total, weight_map = 0, {}
    for i in range(SHARDS):
        name, chosen = f"model-{i + 1:05}-of-{SHARDS:05}.safetensors", every[i::SHARDS]
        total += write_shard(os.path.join(folder, name), chosen, rng)
        weight_map.update({tensor: name for tensor, _ in chosen})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as out:
        json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, out)
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width, "intermediate_size": ff, "num_hidden_layers": layers,
                   "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": vocab, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
                   "max_position_embeddings": 512, "hidden_act": "silu"}, out)
    return total


def logits_of(folder):
    """The peak of `mekik logits` in bytes, and its seconds."""
    start = time.perf_counter()
    process = subprocess.Popen([PROGRAM, "logits", folder, "--tokens", "1,2,3", "--json", "--set", "cache.memory=16MiB"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = process.stdout.read()
    error = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"mekik logits {folder} failed: {error}")
    assert len(json.loads(out)["logits"][0]) == VOCAB
    return usage.ru_maxrss * 1024, time.perf_counter() - start


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "model")
        weights = write_model(folder, WIDTH, FF, LAYERS, VOCAB)
        peak, seconds = logits_of(folder)
        print(f"{weights >> 20} MiB of weights: peak {peak >> 20} MiB, at most {int(1.1 * weights) >> 20} MiB; {seconds:.2f} s")
        return 0 if peak <= 1.1 * weights else 1


sys.exit(main())
