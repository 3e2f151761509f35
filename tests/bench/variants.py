#!/usr/bin/env python3
"""Makes the files that compare.py measures: variants.py SMOLLM2_Q4_1.gguf FOLDER

SmolLM2 requantized by llama.cpp's quantizer to Q4_0, Q5_0, Q5_1, Q8_0, IQ4_NL, MXFP4, F16 and BF16, and a Llama of width 1024 with random
weights and SmolLM2's tokenizer in Q2_K to Q6_K, IQ4_XS, TQ1_0 and TQ2_0, whose blocks need rows of 256. Needs numpy, gguf and llama-cpp-python.
"""
import ctypes
import os
import sys

import gguf
import llama_cpp
import numpy as np

LEGACY = {"Q4_0": 2, "Q5_0": 8, "Q5_1": 9, "Q8_0": 7, "IQ4_NL": 25, "MXFP4": 38, "F16": 1, "BF16": 32}  # llama_ftype
K_TYPES = {"Q2_K": 10, "Q3_K": 12, "Q4_K": 15, "Q5_K": 17, "Q6_K": 18, "IQ4_XS": 30, "TQ1_0": 36, "TQ2_0": 37}
LAYERS, WIDTH, HEADS, KV_HEADS, FF = 12, 1024, 16, 4, 2816


def quantize(source, target, ftype):
    if os.path.exists(target):
        return
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize, params.pure, params.nthread = ftype, True, True, 2
    if llama_cpp.llama_model_quantize(source.encode(), (target + ".part").encode(), params) != 0:
        sys.exit(f"llama.cpp could not make {target}")
    os.rename(target + ".part", target)


def random_llama(tokenizer_from, target):
    reader = gguf.GGUFReader(tokenizer_from)
    writer = gguf.GGUFWriter(target + ".part", "llama")
    for field in reader.fields.values():
        if not field.name.startswith("tokenizer."):
            continue
        value = field.contents()
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(field.name, value)
        else:
            writer.add_key_value(field.name, value, field.types[0])
    vocab = len(reader.fields["tokenizer.ggml.tokens"].contents())
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FF)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(vocab)
    random = np.random.default_rng(1)

    def matrix(name, rows, columns):
        writer.add_tensor(name, (random.standard_normal((rows, columns), np.float32) / np.sqrt(columns)).astype(np.float16))

    matrix("token_embd.weight", vocab, WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    head = WIDTH // HEADS
    for i in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{norm}.weight", np.ones(WIDTH, np.float32))
        for name, rows, columns in (("attn_q", WIDTH, WIDTH), ("attn_k", KV_HEADS * head, WIDTH), ("attn_v", KV_HEADS * head, WIDTH),
                                    ("attn_output", WIDTH, WIDTH), ("ffn_gate", FF, WIDTH), ("ffn_up", FF, WIDTH), ("ffn_down", WIDTH, FF)):
            matrix(f"blk.{i}.{name}.weight", rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.rename(target + ".part", target)


def main():
    source, folder = sys.argv[1:3]
    quiet = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    os.makedirs(folder, exist_ok=True)
    for name, ftype in LEGACY.items():
        quantize(source, os.path.join(folder, f"smollm2-{name}.gguf"), ftype)
    big = os.path.join(folder, "random-F16.gguf")
    if not os.path.exists(big):
        random_llama(source, big)
    for name, ftype in K_TYPES.items():
        quantize(big, os.path.join(folder, f"random-{name}.gguf"), ftype)


main()
