#!/usr/bin/env python3
"""A draft model of a few layers, distilled from a Llama-shaped model on the model's own text.

    make_draft.py MEKIK MODEL OUTPUT.gguf [--layers 2] [--tokens 60000] [--minutes 6] [--type q4_0]

The model (a file or folder that mekik runs) writes texts by itself, from many beginnings at several temperatures. The draft keeps its
embedding, head and last norm as they are, and `--layers` of its layers, spread from first to last; only these are trained, so that behind
them the distribution over the tokens of the texts comes near the model's own. torch and transformers are needed.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from speculation import COPY, PROSE, Server

BEGINNINGS = PROSE + [
    COPY, "The", "In", "A list of countries and their capitals:\n", "1, 2, 3, 4,", "def ", "import ", "Chapter 1\n\n", "Question: ", "Dear ",
    "The quick brown fox", "Water is", "She said", "Yesterday", "# Introduction\n", "The most important", "Scientists have", "Once", "Every morning",
    "To bake bread, ", "The city of", "Mathematics is", "There are many", "He looked at", "This paper", "People often", "When the war ended",
]
LENGTH, CONTEXT, BATCH = 192, 96, 16


def write_texts(mekik, model, tokens):
    """What the model says."""
    server = Server(mekik, model, os.cpu_count(), 8096)
    draw = random.Random(1)

    def one(i):
        answer = server.request("POST", "/v1/completions", {
            "model": "m", "prompt": BEGINNINGS[i % len(BEGINNINGS)], "max_tokens": LENGTH, "ignore_eos": True, "seed": i,
            "temperature": draw.choice((0, 0.5, 0.8))})
        body = json.loads(answer.read())
        if answer.status != 200:
            sys.exit(f"the model does not write: {body}")
        return BEGINNINGS[i % len(BEGINNINGS)] + body["choices"][0]["text"]

    with ThreadPoolExecutor(32) as pool:
        texts = list(pool.map(one, range(math.ceil(tokens / LENGTH))))
    server.close()
    return texts


def open_model(mekik, path, folder):
    """The model as transformers has it, in float."""
    if os.path.isfile(path):
        subprocess.run([mekik, "convert", path, "--to", "safetensors", "--type", "f32", "-o", folder], check=True, stdout=subprocess.DEVNULL)
        path = folder
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32), path


def keep_layers(model, folder, n):
    """A copy with n of the layers."""
    student = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    layers = student.model.layers
    kept = sorted({round(i * (len(layers) - 1) / max(n - 1, 1)) for i in range(n)})
    student.model.layers = torch.nn.ModuleList([layers[i] for i in kept])
    for i, layer in enumerate(student.model.layers):
        layer.self_attn.layer_idx = i
    student.config.num_hidden_layers = len(kept)
    if getattr(student.config, "layer_types", None):
        student.config.layer_types = [student.config.layer_types[i] for i in kept]
    for parameter in student.parameters():
        parameter.requires_grad_(False)
    for parameter in student.model.layers.parameters():
        parameter.requires_grad_(True)
    return student


def train(teacher, student, texts, minutes):
    """Returns how often both think the same token likeliest, on texts that were held back."""
    lines = [text[i:i + CONTEXT] for text in texts for i in range(0, len(text) - CONTEXT + 1, CONTEXT)]
    random.Random(2).shuffle(lines)
    data = torch.tensor(lines)
    held, data = data[:BATCH], data[BATCH:]
    head = teacher.lm_head.weight.index_select(0, torch.unique(torch.cat([data, held])))  # only what occurs: a tenth of the work
    weights = [p for p in student.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.0)
    targets = []

    def target(batch):
        with torch.no_grad():
            return teacher.model(batch).last_hidden_state

    def agreement():
        with torch.no_grad():
            return (target(held) @ head.T).argmax(-1).eq((student.model(held).last_hidden_state @ head.T).argmax(-1)).float().mean().item()

    begin, step, order = time.monotonic(), 0, []
    while (spent := (time.monotonic() - begin) / (60 * minutes)) < 1:
        if not order:
            order = list(range(0, len(data) - BATCH + 1, BATCH))
            random.Random(step).shuffle(order)
        at = order.pop()
        batch = data[at:at + BATCH]
        while len(targets) <= at // BATCH:
            targets.append(None)
        if targets[at // BATCH] is None:  # each is computed once
            targets[at // BATCH] = target(batch)
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1, (step + 1) / 30) * (1 - 0.95 * spent)
        wanted = torch.log_softmax(targets[at // BATCH] @ head.T, -1)
        got = torch.log_softmax(student.model(batch).last_hidden_state @ head.T, -1)
        loss = (wanted.exp() * (wanted - got)).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step}, {100 * spent:.0f}% of the time: loss {loss.item():.3f}", flush=True)
    return agreement()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("mekik")
    arguments.add_argument("model")
    arguments.add_argument("output")
    arguments.add_argument("--layers", type=int, default=2)
    arguments.add_argument("--tokens", type=int, default=60000)
    arguments.add_argument("--minutes", type=float, default=6)
    arguments.add_argument("--type", default="q4_0")
    given = arguments.parse_args()
    torch.manual_seed(0)
    texts = write_texts(given.mekik, given.model, given.tokens)
    with tempfile.TemporaryDirectory() as folder:
        teacher, path = open_model(given.mekik, given.model, os.path.join(folder, "model"))
        texts = AutoTokenizer.from_pretrained(path)(texts)["input_ids"]
        print(f"{sum(map(len, texts))} tokens of the model's own text", flush=True)
        student = keep_layers(teacher, path, given.layers)
        same = train(teacher, student, texts, given.minutes)
        print(f"{100 * same:.0f}% of the likeliest tokens of texts held back are the same", flush=True)
        out = os.path.join(folder, "draft")
        student.save_pretrained(out)
        for name in os.listdir(path):  # the tokenizer and what belongs to it
            if not os.path.exists(os.path.join(out, name)) and not name.endswith((".safetensors", ".index.json")):
                with open(os.path.join(path, name), "rb") as source, open(os.path.join(out, name), "wb") as copy:
                    copy.write(source.read())
        subprocess.run([given.mekik, "convert", out, "--to", "gguf", "--type", given.type, "-o", given.output], check=True)


main()
