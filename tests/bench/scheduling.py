"""Schedulers against each other on one server each, asked in turns: medians of interleaved rounds.

    MEKIK_BUILD=build/release python3 tests/bench/scheduling.py [ROUNDS]

- 32 users of mixed lengths, at any time: tokens a second under `static` and `continuous`, and the part of all places that was busy
- a long prompt that comes to users who decode: P99 of their time per token, undisturbed and disturbed, under `continuous` and `fair`
"""
import http.client
import json
import math
import os
import random
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from real import Mekik, need_model  # noqa: E402

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
USERS, WARM_UP, SECONDS = 32, 5, 30


def tokens_of(seed, n):
    draw = random.Random(seed)
    return [draw.randrange(100, 40000) for _ in range(n)]


def answer_length(draw):
    """Lengths as chats have them: half are under 40 tokens, one in fifty is ten times as long."""
    return max(2, min(512, round(40 * math.exp(draw.gauss(0, 1.1)))))


def throughput(server, seed):
    """Tokens a second of answers of users who each ask again when they have been answered, and the part of the places that was busy."""
    stop, ended, failed = threading.Event(), [], []

    def user(i):
        draw = random.Random(1000 * seed + i)
        while not stop.is_set():
            length, prompt = answer_length(draw), tokens_of(draw.random(), draw.choice((10, 30, 60)))
            try:
                server.complete(prompt, max_tokens=length, ignore_eos=True)
            except OSError as error:
                failed.append(error)
                return
            ended.append(length)

    users = [threading.Thread(target=user, args=(i,)) for i in range(USERS)]
    for thread in users:
        thread.start()
    time.sleep(WARM_UP)
    names = ("mekik_step_sequences_total", "mekik_steps_total", "mekik_generation_tokens_total")
    before, begin = [server.metric(name) for name in names], time.monotonic()
    time.sleep(SECONDS)
    after, seconds = [server.metric(name) for name in names], time.monotonic() - begin
    stop.set()
    for thread in users:
        thread.join()
    assert not failed, failed[0]
    sequences, steps, tokens = (b - a for a, b in zip(before, after))
    return tokens / seconds, sequences / steps / USERS


def watch(server, body):
    """When each chunk of a stream came."""
    times = []
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("POST", "/v1/completions", json.dumps(dict(body, stream=True)), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    while line := reply.readline():
        if line.startswith(b"data: {"):
            times.append(time.monotonic())
    connection.close()
    return times


def tpots(server, seed, long_prompt):
    """Milliseconds a token of each of eight users' answers, in the middle of which a prompt of 6,000 tokens may come."""
    out = []

    def user(i):
        body = {"model": "smol", "prompt": tokens_of(seed * 100 + i, 20), "temperature": 0, "max_tokens": 200, "ignore_eos": True}
        times = watch(server, body)
        out.append(1000 * (times[-1] - times[0]) / 199)

    users = [threading.Thread(target=user, args=(i,)) for i in range(8)]
    for thread in users:
        thread.start()
    if long_prompt:
        time.sleep(0.5)
        server.complete(tokens_of(seed + 7, 6000), max_tokens=1)
    for thread in users:
        thread.join()
    return max(out)  # of eight, the P99 is the slowest


def main():
    need_model()
    common = dict(cache="none", max_sequences=USERS, memory="1GiB", max_batch_tokens=512)
    servers = {name: Mekik(scheduler=name, **common) for name in ("static", "continuous", "fair")}
    speeds, slowest = {}, {}
    for seed in range(ROUNDS):
        for name in ("static", "continuous"):
            speeds.setdefault(name, []).append(throughput(servers[name], seed))
        for name in ("continuous", "fair"):
            for long_prompt in (False, True):
                slowest.setdefault((name, long_prompt), []).append(tpots(servers[name], seed, long_prompt))
    for name, of in speeds.items():
        print(f"{name}: {statistics.median(s for s, _ in of):.0f} tokens/s, {100 * statistics.median(b for _, b in of):.0f}% of the places busy")
    print(f"continuous / static = {statistics.median(a[0] / b[0] for a, b in zip(speeds['continuous'], speeds['static'])):.2f}")
    for name in ("continuous", "fair"):
        alone, disturbed = (statistics.median(slowest[name, long]) for long in (False, True))
        print(f"{name}: {alone:.1f} ms a token undisturbed, {disturbed:.1f} with a prompt of 6,000 tokens: {disturbed / alone:.2f} times")
    for server in servers.values():
        server.stop()


main()
