#!/usr/bin/env python3
"""Decoding with a drafter against without, in interleaved runs: speculation.py MEKIK FILE.gguf [--runs N] [--threads N] [--draft MODEL.gguf]

Copies (a text is repeated word for word), prose (drawn at temperature 0.8), and 16 users at once (half of them copy), each on a server
with the drafter and on one without, tokens per second after the first token. Beside the time on the clock stands the time of the
server's threads: on a busy machine it says more, since it does not wait. Medians of N pairs, and the smallest and largest ratio.
"""
import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TEXT = ("The committee met on Tuesday to hear the report of the treasurer. The treasurer said that the roof of the mill had cost four "
        "hundred crowns, and that the wheel would cost two hundred more before the winter. Nobody asked about the bridge, although the "
        "river had taken two of its posts in March, and the road behind it had not been seen since the snow. ")
COPY = f"{TEXT}\n\nThe same text again, word for word:\n\nThe committee met on Tuesday to hear"
PROSE = ["Once upon a time, in a village by the sea, there lived", "The history of the steam engine begins", "In my opinion, the best way to learn is"]
USERS = 16


class Server:
    def __init__(self, program, path, threads, port, *words):
        self.folder = tempfile.TemporaryDirectory()
        self.port = port
        pipeline = os.path.join(self.folder.name, "p.toml")
        with open(pipeline, "w") as out:
            out.write(f'[model]\npath = {json.dumps(os.path.abspath(path))}\nname = "m"\n[backend]\nthreads = {threads}\n[cache]\nuse = "none"\n'
                      f'[[sink]]\nuse = "prometheus"\n[server]\nlisten = ["tcp://127.0.0.1:{port}"]\n')
        self.process = subprocess.Popen([program, "serve", pipeline, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                if self.request("GET", "/health/ready").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        sys.exit(f"mekik does not serve {path}")

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse()

    def seconds_of_threads(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def complete(self, prompt, tokens, **fields):
        """Seconds from the first token to the last, on the clock and of threads; and the text."""
        answer = self.request("POST", "/v1/completions", {"model": "m", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True,
                                                          "stream": True, **fields})
        first, text = None, ""
        while line := answer.readline():
            if line.startswith(b"data: {"):
                text += json.loads(line[6:])["choices"][0]["text"]
                now = time.perf_counter(), self.seconds_of_threads()
                first = first or now
        return now[0] - first[0], now[1] - first[1], text

    def copy(self, seed):
        return 160 / (run := self.complete(COPY, 160, temperature=0))[0], 160 / run[1], run[2]

    def prose(self, seed):
        clock = threads = 0
        texts = []
        for i, prompt in enumerate(PROSE):
            run = self.complete(prompt, 160, temperature=0.8, seed=seed * 10 + i)
            clock, threads = clock + run[0], threads + run[1]
            texts.append(run[2])
        return 160 * len(PROSE) / clock, 160 * len(PROSE) / threads, texts

    def users(self, seed):
        texts = [None] * USERS

        def user(i):
            prompt, fields = (COPY, {"temperature": 0}) if i % 2 == 0 else (PROSE[i % 3], {"temperature": 0.8, "seed": seed * 100 + i})
            texts[i] = self.complete(prompt, 60, **fields)[2]

        workers = [threading.Thread(target=user, args=(i,)) for i in range(USERS)]
        began, before = time.perf_counter(), self.seconds_of_threads()
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        return 60 * USERS / (time.perf_counter() - began), 60 * USERS / (self.seconds_of_threads() - before), texts

    def counters(self):
        lines = self.request("GET", "/metrics").read().decode().splitlines()
        value = {line.split("{")[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("mekik_spec_decode")}
        return value["mekik_spec_decode_num_draft_tokens_total"], value["mekik_spec_decode_num_accepted_tokens_total"]

    def close(self):
        self.process.terminate()
        self.process.wait()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("mekik")
    arguments.add_argument("file")
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--draft", help="measures the drafter `model` with this one in place of ngram and suffix")
    given = arguments.parse_args()
    drafters = {"model": [f"--set=draft.model={os.path.abspath(given.draft)}"]} if given.draft else {"ngram": [], "suffix": []}
    plain = Server(given.mekik, given.file, given.threads, 8097)
    print(f"{given.threads} threads, medians of {given.runs} interleaved pairs; tokens per second with / without = ratio (smallest .. largest)")
    for name, words in drafters.items():
        drafting = Server(given.mekik, given.file, given.threads, 8098, f"--set=draft.use={name}", *words)
        for what in ("copy", "prose", "users"):
            pairs, drafted = [], drafting.counters()
            for run in range(given.runs + 1):
                ours, theirs = getattr(drafting, what)(run), getattr(plain, what)(run)
                if ours[2] != theirs[2]:
                    sys.exit(f"{name}, {what}: the answers differ")
                if run != 0:  # the first warms up, and teaches what steps cost
                    pairs.append((ours, theirs))
            after = drafting.counters()
            line = f"{name:7} {what:6}"
            for k, unit in enumerate(("clock", "threads")):
                ratios = sorted(a[k] / b[k] for a, b in pairs)
                line += (f"  {unit} {statistics.median(a[k] for a, _ in pairs):7.1f} / {statistics.median(b[k] for _, b in pairs):7.1f} = "
                         f"{statistics.median(ratios):5.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f})")
            print(f"{line}  drafts {after[0] - drafted[0]:.0f}, true {after[1] - drafted[1]:.0f}", flush=True)
        drafting.close()
    plain.close()


if __name__ == "__main__":
    main()
