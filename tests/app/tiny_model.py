"""Writes a model of a few kilobytes that the program can run: one layer, a token a byte, weights from a fixed random stream.

Tests of the command line need a model, but not a good one: this one needs no network, starts in milliseconds, and its 64 tokens of
context are quickly used up.
"""
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from gguf_values import U32, I32, F32, BOOL, STRING, ARRAY, text, value

CONTEXT = 64
SPECIAL = ["<|start|>", "<|end|>", "<|turn|>"]  # ids 256, 257 and 258: begin of text, end of text, begin of a turn
VOCABULARY = 256 + len(SPECIAL)
TEMPLATE = ("{% for m in messages %}<|turn|>{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}<|turn|>assistant:{% endif %}")


def byte_letters():
    """GPT-2's letter for each byte: byte-level vocabularies spell their tokens with them."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(0x100 + i) for i, b in enumerate(rest)}}


def keys(template, vocabulary, bos, pre, padding):
    letters = byte_letters()
    tokens = [letters[b] for b in range(256)] + SPECIAL + [f"[PAD{i}]" for i in range(padding)]
    out = [("general.architecture", STRING, "llama"), ("llama.context_length", U32, CONTEXT), ("llama.embedding_length", U32, 32),
           ("llama.block_count", U32, 1), ("llama.feed_forward_length", U32, 64), ("llama.attention.head_count", U32, 2),
           ("llama.attention.head_count_kv", U32, 1), ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
           ("llama.rope.dimension_count", U32, 16), ("llama.vocab_size", U32, len(tokens))]
    if vocabulary:
        out += [("tokenizer.ggml.model", STRING, "gpt2"),
                ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
                ("tokenizer.ggml.token_type", ARRAY, (I32, [1] * 256 + [3] * len(SPECIAL) + [5] * padding)),
                ("tokenizer.ggml.merges", ARRAY, (STRING, [])), ("tokenizer.ggml.eos_token_id", U32, 257)]
    if vocabulary and pre is not None:
        out.append(("tokenizer.ggml.pre", STRING, pre))
    if vocabulary and bos:
        out += [("tokenizer.ggml.bos_token_id", U32, 256), ("tokenizer.ggml.add_bos_token", BOOL, 1)]
    if template is not None:
        out.append(("tokenizer.chat_template", STRING, template))
    return out


SHAPES = [("token_embd.weight", [32, VOCABULARY]), ("output_norm.weight", [32]), ("blk.0.attn_norm.weight", [32]),
          ("blk.0.ffn_norm.weight", [32]), ("blk.0.attn_q.weight", [32, 32]), ("blk.0.attn_k.weight", [32, 16]),
          ("blk.0.attn_v.weight", [32, 16]), ("blk.0.attn_output.weight", [32, 32]), ("blk.0.ffn_gate.weight", [32, 64]),
          ("blk.0.ffn_up.weight", [32, 64]), ("blk.0.ffn_down.weight", [64, 32])]


def model(template=TEMPLATE, vocabulary=True, bos=True, pre="gpt-2", types=None, padding=0):
    """The bytes of the GGUF file. template None: it has none; vocabulary False: no tokenizer either; bos False: no such token; pre: the
    name of its splitting of words. types: tensors by name that get another (type number, sizes), filled with zeros. padding: tokens behind
    the others that mean nothing."""
    metadata, types = keys(template, vocabulary, bos, pre, padding), types or {}
    shapes = [("token_embd.weight", [32, VOCABULARY + padding])] + SHAPES[1:]
    out = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(metadata))
    for name, kind, v in metadata:
        out += text(name) + struct.pack("<I", kind) + value(kind, v)
    stream, data = random.Random(1), b""
    for name, sizes in shapes:
        kind, sizes = types.get(name, (0, sizes))
        out += text(name) + struct.pack("<I", len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes) + struct.pack("<IQ", kind, len(data))
        count = sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        floats = [1.0] * count if len(sizes) == 1 else [stream.uniform(-0.5, 0.5) for _ in range(count)]
        data += struct.pack(f"<{count}f", *floats) if kind == 0 else b"\0" * (4 * count)
    return out + b"\0" * (-len(out) % 32) + data
