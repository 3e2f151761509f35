"""Serving needs the memory that the plan says before load: within 5% of it under load, and at most the packed weights, the KV budget and
80 MB. What is counted is what the process holds of its own (RssAnon and RssShmem); pages of files can be dropped at any time."""
import os
import re
import sys
import threading
import time

from harness import main
from real import NAME, Mekik, need_model

need_model()
os.environ["XDG_CACHE_HOME"] = "/dev/null"  # no folder: weights are packed, not mapped from what an earlier start kept, so they count
GEMMA = os.path.abspath("models/gemma-3-270m-q4_k_m.gguf")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
LONG = "Once upon a time there was a small weaver who had a loom, a shuttle and a cat. " * 12


def plan_of(log):
    """What the log says before load, in bytes, by row."""
    rows = re.findall(r"^  (weights|kv cache|states|work|host|total) +([0-9.]+) (B|KiB|MiB|GiB)", log, re.MULTILINE)
    return {name: float(number) * UNITS[unit] for name, number, unit in rows}


def resident(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return sum(int(n) << 10 for n in re.findall(r"^(?:RssAnon|RssShmem):\s+(\d+) kB", file.read(), re.MULTILINE))


def under_load(server, clients=32):
    """The most it held while every client had requests with long prompts, scores and several answers; the KV cache was full."""
    faults = []

    def client(number):
        body = {"model": NAME, "prompt": f"{number} {LONG}", "max_tokens": 12, "n": 2, "seed": number, "logprobs": 20, "echo": number % 16 == 0,
                "top_p": 0.9, "top_k": 1000, "frequency_penalty": 0.5}
        try:
            code, _, text = server.request("POST", "/v1/completions", body, timeout=500)
            assert code == 200, text[:300]
        except Exception as error:
            faults.append(repr(error))

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, resident(server))
        time.sleep(0.05)
    assert not faults, faults[:3]
    return most


def check(**values):
    with Mekik(**values) as server:
        plan = plan_of(server.log)
        at_start = resident(server)
        most = under_load(server)
        server.wait_until_idle()
        mb = lambda n: f"{n / 1e6:.1f} MB"
        print(f"{values}: plan {mb(plan['total'])}, ready {mb(at_start)}, most {mb(most)} ({most / plan['total']:.3f}), "
              f"weights + kv + {mb(most - plan['weights'] - plan['kv cache'])}")
        assert 0.95 <= most / plan["total"] <= 1.05, "the plan is wrong by more than 5%"
        if "model" in values:
            return
        assert most <= plan["weights"] + plan["kv cache"] + 80e6, "more than weights, KV and 80 MB"
        # SmolLM2's embedding is its head, too: 49152 rows of 576. Stored twice, in any form of 4 bits or more, it would show.
        assert plan["weights"] < 1.10 * 98362432, "the packed weights are more than the file: is the tied embedding there twice?"


def as_the_demo_serves():
    check(memory="256MiB", max_batch_tokens=512, max_sequences=32)


def with_large_steps():
    check(memory="128MiB", max_batch_tokens=1024, max_sequences=64)


# 262144 tokens: what grows with the vocabulary shows.
def with_a_large_vocabulary():
    if not os.path.exists(GEMMA):
        print("skipped: " + GEMMA + " is not there (scripts/get-gemma3.sh fetches it)")
        sys.exit(77)
    check(model=GEMMA, memory="64MiB", max_batch_tokens=256, max_sequences=32)


main([with_a_large_vocabulary] if sys.argv[1:] == ["large"] else [as_the_demo_serves, with_large_steps])
