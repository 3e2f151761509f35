#!/usr/bin/env python3
"""mekik against llama.cpp on the same files, in interleaved runs: compare.py MEKIK FILE.gguf... [--runs N] [--threads N]

Prefill of 512 tokens, decoding of 64 behind a short prompt, and 16 sequences of 32 at once, greedy, in tokens per second; medians of N runs
that alternate between the two, each at its better KV and attention settings. mekik is measured through its server, HTTP and streaming
included; llama.cpp through its C API (llama-cpp-python, built natively), without. Needs numpy and llama-cpp-python.
"""
import argparse
import ctypes
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import llama_cpp

PREFILL, DECODE, MANY, MANY_TOKENS = 512, 64, 16, 32
PROMPTS = [[1000 + (7919 * (i + 512 * s)) % 40000 for i in range(PREFILL)] for s in range(MANY)]


class Mekik:
    def __init__(self, program, path, threads):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.folder.name, "s")
        base = os.path.join(os.path.dirname(program), "..", "..", "..", "pipelines", "base.toml")
        pipeline = os.path.join(self.folder.name, "p.toml")
        with open(pipeline, "w") as out:
            out.write(f'[pipeline]\nextends = {json.dumps(os.path.abspath(base))}\n[model]\npath = {json.dumps(os.path.abspath(path))}\n'
                      f'name = "m"\n[backend]\nthreads = {threads}\n[cache]\nuse = "none"  # every run computes all of its prompt\n[server]\nlisten = ["tcp://127.0.0.1:8099"]\n')
        self.process = subprocess.Popen([program, "serve", pipeline], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                if self.request("GET", "/health/ready").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        sys.exit(f"mekik does not serve {path}")

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", 8099, timeout=300)
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse()

    def complete(self, prompt, tokens):
        """Seconds from sending to the first and to the last token."""
        start = time.perf_counter()
        answer = self.request("POST", "/v1/completions", {"model": "m", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                                                          "ignore_eos": True, "stream": True})
        if answer.status != 200:
            sys.exit(answer.read().decode())
        first = None
        while line := answer.readline():
            if line.startswith(b"data: {"):
                last = time.perf_counter() - start
                first = first or last
        return first, last

    def prefill(self):
        return PREFILL / self.complete(PROMPTS[0], 1)[1]

    def decode(self):
        first, last = self.complete(PROMPTS[0][:8], DECODE + 1)
        return DECODE / (last - first)

    def many(self):
        workers = [threading.Thread(target=self.complete, args=(PROMPTS[s][:8], MANY_TOKENS)) for s in range(MANY)]
        start = time.perf_counter()
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        return MANY * MANY_TOKENS / (time.perf_counter() - start)

    def close(self):
        self.process.terminate()
        self.process.wait()


class Llama:
    def __init__(self, path, threads, flash):
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = MANY * 128, PREFILL, PREFILL, MANY
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = 1 if flash else 0
        params.kv_unified = True
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(PREFILL, 0, 1)

    def step(self, tokens, position, sequences, wanted):
        b = self.batch
        b.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            b.token[i], b.n_seq_id[i] = token, 1
            b.pos[i] = position if len(sequences) > 1 else position + i
            b.seq_id[i][0] = sequences[i] if len(sequences) > 1 else sequences[0]
            b.logits[i] = int(len(sequences) > 1 or i == len(tokens) - 1)
        if llama_cpp.llama_decode(self.context, b) != 0:
            sys.exit("llama_decode failed")
        return [self.best(i) for i in wanted]

    def best(self, i):  # argmax in C's speed
        import numpy as np
        logits = llama_cpp.llama_get_logits_ith(self.context, i)
        return int(np.ctypeslib.as_array(ctypes.cast(logits, ctypes.POINTER(ctypes.c_float)), (self.vocab,)).argmax())

    def clear(self):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)

    def prefill(self):
        self.clear()
        start = time.perf_counter()
        self.step(PROMPTS[0], 0, [0], [-1])
        return PREFILL / (time.perf_counter() - start)

    def decode(self):
        self.clear()
        token = self.step(PROMPTS[0][:8], 0, [0], [-1])
        start = time.perf_counter()
        for i in range(DECODE):
            token = self.step(token, 8 + i, [0], [-1])
        return DECODE / (time.perf_counter() - start)

    def many(self):
        self.clear()
        start = time.perf_counter()
        tokens = [self.step(PROMPTS[s][:8], 0, [s], [-1])[0] for s in range(MANY)]
        for i in range(MANY_TOKENS - 1):
            tokens = self.step(tokens, 8 + i, list(range(MANY)), range(MANY))
        return MANY * MANY_TOKENS / (time.perf_counter() - start)

    def close(self):
        llama_cpp.llama_batch_free(self.batch)
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("mekik")
    arguments.add_argument("files", nargs="+")
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--threads", type=int, default=2)
    given = arguments.parse_args()
    quiet = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    print(f"{given.threads} threads, medians of {given.runs} interleaved runs; tokens per second: mekik / llama.cpp = ratio (smallest .. largest)")
    for path in given.files:
        sides = {"mekik": Mekik(given.mekik, path, given.threads), "plain": Llama(path, given.threads, False),
                 "flash": Llama(path, given.threads, True)}
        measured = {(side, what): [] for side in sides for what in ("prefill", "decode", "many")}
        for run in range(given.runs + 1):
            for what in ("prefill", "decode", "many"):
                for name, side in sides.items():
                    rate = getattr(side, what)()
                    if run != 0:  # the first warms up
                        measured[name, what].append(rate)
        for side in sides.values():
            side.close()
        line = f"{os.path.basename(path):26}"
        for what in ("prefill", "decode", "many"):
            ours = measured["mekik", what]
            theirs = max((measured["plain", what], measured["flash", what]), key=statistics.median)
            ratios = sorted(a / b for a, b in zip(ours, theirs))
            line += (f"  {what} {statistics.median(ours):7.1f} / {statistics.median(theirs):7.1f} = {statistics.median(ratios):5.2f}"
                     f" ({ratios[0]:.2f} .. {ratios[-1]:.2f})")
        print(line, flush=True)


main()
