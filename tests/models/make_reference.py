#!/usr/bin/env python3
"""Makes the reference that tests/models/check.py compares with: transformers in F32 on the dequantized weights of a GGUF file.

    make_reference.py MODEL.gguf OUT.npz [--llama]

Needs torch, transformers and gguf, and for --llama (the same file through llama.cpp, to record how close that comes)
llama-cpp-python. Run by hand; what it writes is checked in.

For each prompt: its tokens, the logits after its last token (as int16 under one scale, error below 1e-4 of their range), 48 greedy
tokens, and at each of those steps by how many standard deviations of the logits the best leads the second.
"""
import argparse
import os

import numpy as np
import torch
import transformers
from gguf import GGUFReader

PROMPTS = [
    "Why is the sky blue?",
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    ",
    "Water boils at 100 degrees Celsius because",
    "1, 2, 3, 5, 8, 13,",
    "Dear Sir or Madam,\n\nI am writing to",
    "Die Hauptstadt von Deutschland ist",
    "The three laws of motion are:\n1.",
    "In 1969, the first humans",
    "To make pancakes you need flour, milk and",
    "The quick brown fox jumps over the lazy dog. " * 12,
]


def greedy(model, tokens, count):
    made, leads, first = [], [], None
    with torch.no_grad():
        out = model(torch.tensor([tokens]), use_cache=True)
        for _ in range(count):
            logits = out.logits[0, -1].float()
            if first is None:
                first = logits
            top = torch.topk(logits, 2)
            leads.append(float((top.values[0] - top.values[1]) / logits.std()))
            made.append(int(top.indices[0]))
            out = model(torch.tensor([[made[-1]]]), past_key_values=out.past_key_values, use_cache=True)
    return first.numpy(), made, leads


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("model")
    arguments.add_argument("out")
    arguments.add_argument("--llama", action="store_true")
    arguments = arguments.parse_args()
    torch.set_num_threads(1)
    folder, file = os.path.split(os.path.abspath(arguments.model))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32, attn_implementation="sdpa").eval()
    fields = GGUFReader(arguments.model).fields
    add_bos = "tokenizer.ggml.add_bos_token" in fields and bool(fields["tokenizer.ggml.add_bos_token"].contents())
    bos = [int(fields["tokenizer.ggml.bos_token_id"].contents())] if add_bos else []

    llama = None
    if arguments.llama:
        import llama_cpp
        llama = llama_cpp.Llama(arguments.model, n_ctx=512, n_threads=1, logits_all=False, verbose=False)

    out, cosines = {}, []
    for i, prompt in enumerate(PROMPTS):
        tokens = bos + tokenizer(prompt, add_special_tokens=False)["input_ids"]
        logits, made, leads = greedy(model, tokens, 48)
        scale = np.abs(logits).max() / 32767
        out[f"tokens_{i}"] = np.array(tokens, np.int32)
        out[f"logits_{i}"] = np.round(logits / scale).astype(np.int16)
        out[f"scale_{i}"] = np.float32(scale)
        out[f"greedy_{i}"] = np.array(made, np.int32)
        out[f"lead_{i}"] = np.array(leads, np.float32)
        if llama is not None:
            llama.reset()
            llama.eval(tokens)
            theirs = np.array(llama._ctx.get_logits_ith(-1)[: len(logits)], np.float64)
            cosines.append(float(theirs @ logits.astype(np.float64) / np.linalg.norm(theirs) / np.linalg.norm(logits.astype(np.float64))))
        print(i, tokenizer.decode(made)[:60].replace("\n", " "), cosines[-1:] or "")
    out["llama_cosines"] = np.array(cosines, np.float64)
    np.savez_compressed(arguments.out, **out)


main()
