"""More sequences than there are blocks for, on the real model: those that wait are swapped to a slower tier or computed again, nobody gets
an error, and every answer is the one that its request gets alone."""
import http.client
import json
import tempfile
import threading
import time

from fake_redis import FakeRedis
from harness import main
from real import Mekik, need_model

need_model()
TEXT = "".join(f"In the year {1500 + i} the clock on tower number {i * 7} rang {i % 12} times, and nobody knew why. " for i in range(40))
N = 4
FIELDS = dict(max_tokens=110, ignore_eos=True, logprobs=1, seed=5)
KINDS = [dict(temperature=0), dict(temperature=0.8, top_p=0.9), dict(temperature=0.7, repetition_penalty=1.3), dict(temperature=1, min_p=0.05)]

with Mekik() as plain:
    TOKENS = plain.post("/tokenize", {"prompt": TEXT})["tokens"]
    PROMPTS = [TOKENS[60 * i:60 * i + 250] for i in range(N)]


def body(i, **fields):
    return {"model": "smol", "prompt": PROMPTS[i], **FIELDS, **KINDS[i], **fields}


def answer(of, i, **fields):
    choice = of.post("/v1/completions", body(i, **fields))["choices"][0]
    return choice["text"], choice["logprobs"], choice["finish_reason"]


with Mekik() as plain:
    EXPECTED = [answer(plain, i) for i in range(N)]


def short(keys, **values):  # blocks for about two of them
    return Mekik(cache="prefix", cache_keys=keys, memory="24MiB", **values)


def all_at_once(of, which=range(N), between=0.0, **fields):
    got, threads = {}, []

    def one(i):
        got[i] = answer(of, i, **{key: value(i) for key, value in fields.items()})

    began = time.monotonic()
    for i in which:
        threads.append(threading.Thread(target=one, args=(i,)))
        threads[-1].start()
        time.sleep(between)
    for thread in threads:
        thread.join()
    for i in which:
        assert got.get(i) == EXPECTED[i], i
    return time.monotonic() - began


def counted(of):
    assert of.metric("mekik_requests_finished_total", reason="error") == 0
    return (of.metric("mekik_num_preemptions_total", kind="swap"), of.metric("mekik_num_preemptions_total", kind="recompute"),
            of.metric("mekik_preempted_tokens_computed_total"))


def without_a_tier_it_is_computed_again():
    with short("") as one:
        took = all_at_once(one)
        swapped, dropped, again = counted(one)
        print(f"     computed again: {took:.2f} s, {dropped:.0f} preemptions, {again:.0f} tokens")
        assert swapped == 0 and dropped > 0
        one.wait_until_idle()


def swapped_to_memory():
    for scheduler in ("continuous", "priority", "fair"):
        with short('host_memory = "256MiB"', scheduler=scheduler) as one:
            took = all_at_once(one)
            swapped, dropped, again = counted(one)
            print(f"     {scheduler}, swapped to memory: {took:.2f} s, {swapped:.0f} preemptions, {again:.0f} tokens computed again")
            assert swapped > 0 and dropped == 0 and again == 0
            assert one.metric("mekik_cache_tier_values_read_total", tier="host") > 0
            one.wait_until_idle()


def a_higher_class_takes_the_place():
    with short('host_memory = "256MiB"', scheduler="priority") as one:
        all_at_once(one, between=0.25, priority=lambda i: i)
        swapped, _, again = counted(one)
        assert swapped > 0 and again == 0


def swapped_to_a_directory():
    with tempfile.TemporaryDirectory() as folder, short(f'disk = "{folder}/cache"') as one:
        took = all_at_once(one)
        swapped, dropped, again = counted(one)
        print(f"     swapped to a directory: {took:.2f} s, {swapped:.0f} + {dropped:.0f} preemptions, {again:.0f} tokens computed again")
        assert swapped > 0


def the_tier_fails_in_the_middle():
    for fault in ("late", "half", "damaged"):
        fake = FakeRedis()
        with short(f'redis = "{fake.address}"') as one:
            threading.Timer(1.5, lambda: setattr(fake, "fault", fault)).start()
            all_at_once(one)
            counted(one)
            one.wait_until_idle(20)
        fake.stop()


def who_leaves_while_swapped_out():
    with short('host_memory = "256MiB"', scheduler="priority") as one:

        def leave(i):
            connection = http.client.HTTPConnection("127.0.0.1", one.port)
            connection.request("POST", "/v1/completions", json.dumps(body(i, stream=True, priority=-1)), {"Content-Type": "application/json"})
            end = time.monotonic() + 30
            while one.metric("mekik_num_preemptions_total", kind="swap") == 0:
                assert time.monotonic() < end
                time.sleep(0.01)
            time.sleep(0.05 * i)
            connection.sock.close()
            connection.close()

        leavers = [threading.Thread(target=leave, args=(i,)) for i in (2, 3)]
        for leaver in leavers:
            leaver.start()
        time.sleep(0.3)
        all_at_once(one, which=range(2))
        for leaver in leavers:
            leaver.join()
        one.wait_until_idle(10)


def drafts_beside():
    with short('host_memory = "256MiB"', samplers='[[sampler]]\nuse = "standard"\n[draft]\nuse = "ngram"') as one:
        all_at_once(one)
        swapped, _, _ = counted(one)
        assert swapped > 0


main([without_a_tier_it_is_computed_again, swapped_to_memory, a_higher_class_takes_the_place, swapped_to_a_directory,
      the_tier_fails_in_the_middle, who_leaves_while_swapped_out, drafts_beside])
