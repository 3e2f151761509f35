"""The cache's slower tier in a directory: what one server computed is found by the next one, after an end, a kill -9 and a damage; nothing
wrong is ever read back; a directory that cannot be used costs nothing but the reuse."""
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from harness import main
from real import Mekik, need_model

need_model()
TINY = os.path.abspath("tests/models/tiny")
plain = Mekik()
TEXT = "".join(f"In the year {1500 + i} the clock on tower number {i * 7} rang {i % 12} times, and nobody knew why. " for i in range(40))
TOKENS = plain.post("/tokenize", {"prompt": TEXT})["tokens"][:700]


def server(folder, *words, host_memory=None, **values):
    keys = f'disk = "{folder}"' + (f'\nhost_memory = "{host_memory}"' if host_memory else "")
    return Mekik(*words, cache="prefix", cache_keys=keys, **values)


def ask(of, tokens, **fields):
    answer = of.complete(tokens, max_tokens=6, **fields)
    return answer["choices"][0]["text"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def written(of, folder):
    """Waits until all that was given to the directory is there, and no more is given."""
    end = time.monotonic() + 60
    before = 0
    while (given := of.metric("mekik_cache_tier_written_bytes_total")) == 0 or given != before or \
            sum(map(os.path.getsize, values(folder))) < given:
        assert time.monotonic() < end, "values are missing"
        before = given
        time.sleep(0.5)


def values(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]


class Folder(tempfile.TemporaryDirectory):
    def __enter__(self):
        return os.path.join(super().__enter__(), "cache")


def after_an_end():
    expected, _ = ask(plain, TOKENS)
    with Folder() as folder:
        with server(folder) as first:
            assert ask(first, TOKENS) == (expected, 0)
        with server(folder) as second:
            assert ask(second, TOKENS) == (expected, len(TOKENS) - 1)
            assert second.metric("mekik_cache_tier_read_bytes_total") > 0
            other = TOKENS[:500] + [t + 1 for t in TOKENS[500:550]]
            text, known = ask(second, other)
            assert known == 500 and text == ask(plain, other)[0], known
        with server(folder, block_tokens=16) as third:  # blocks of another size are others
            assert ask(third, TOKENS) == (expected, 0)
        with server(folder, memory="96MiB") as fourth:
            turn = TOKENS + fourth.post("/tokenize", {"prompt": expected})["tokens"] + TOKENS[:20]
            text, known = ask(fourth, turn)
            assert known >= len(TOKENS) and text == ask(plain, turn)[0], known


def after_a_kill():
    expected, _ = ask(plain, TOKENS)
    with Folder() as folder:
        first = server(folder)
        ask(first, TOKENS)
        written(first, folder)
        first.signal(signal.SIGKILL)
        first.end()
        with server(folder) as second:
            assert ask(second, TOKENS) == (expected, len(TOKENS) - 1)


def killed_while_it_writes():
    """Fifty times, at random moments."""
    draw = random.Random(11)
    prompts = [TOKENS[a:a + 250] for a in (0, 100, 200, 300)]
    expected = [ask(plain, prompt)[0] for prompt in prompts]
    known = 0
    with Folder() as folder:
        for _ in range(50):
            one = server(folder)
            for i in draw.sample(range(4), 2):
                text, found = ask(one, prompts[i])
                assert text == expected[i]
                known += found
            assert "damaged" not in one.log, one.log
            time.sleep(draw.random() * 0.03)
            one.signal(signal.SIGKILL)
            one.end()
            if draw.random() < 0.1:
                shutil.rmtree(folder)
        with server(folder) as last:
            ask(last, TOKENS[:80])
        assert not [path for path in values(folder) if path.endswith(".partial")]
    assert known > 1000, known


def damaged_values():
    expected, _ = ask(plain, TOKENS)
    with Folder() as folder:
        with server(folder) as first:
            ask(first, TOKENS)
        for path in values(folder):
            size = os.path.getsize(path)
            with open(path, "r+b") as file:
                file.seek(size // 2)
                byte = file.read(1)
                file.seek(size // 2)
                file.write(bytes([byte[0] ^ 64]))
        with server(folder) as second:
            assert ask(second, TOKENS)[0] == expected
            assert second.metric("mekik_cache_tier_failures_total") > 0
            assert "is damaged, and was removed; what it would have held is computed again" in second.log, second.log


def budget():
    with Folder() as folder:
        with Mekik(cache="prefix", cache_keys=f'disk = "{folder}"\ndisk_size = "20MiB"') as one:
            for a in range(0, 400, 50):
                ask(one, TOKENS[a:a + 300])
        assert 4 << 20 < sum(map(os.path.getsize, values(folder))) <= 20 << 20


def budget_of_processes():
    """They keep to it together, but for what each writes between two looks."""
    with Folder() as folder:
        keys = f'disk = "{folder}"\ndisk_size = "20MiB"'
        with Mekik(cache="prefix", cache_keys=keys) as one, Mekik(cache="prefix", cache_keys=keys) as two:
            for of in (one, two):
                ask(of, TOKENS[:40])  # each has looked at an empty directory
            for a in range(0, 300, 50):
                ask(one, TOKENS[a:a + 300])
                ask(two, TOKENS[a + 25:a + 325])
        assert sum(map(os.path.getsize, values(folder))) <= 24 << 20


def theirs_stays():
    """Files of others in the directory."""
    with Folder() as folder:
        theirs = [os.path.join(folder, *name) for name in (("film.partial",), ("price.value",), ("ab", "price.value"), ("in", "ab", "x.partial"))]
        for path in theirs:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(bytes(2 << 20))
        with Mekik(cache="prefix", cache_keys=f'disk = "{folder}"\ndisk_size = "3MiB"') as one:
            for a in range(0, 200, 50):
                ask(one, TOKENS[a:a + 300])
        assert all(os.path.getsize(path) == 2 << 20 for path in theirs)


def two_processes():
    prompts = [TOKENS[a:a + 200] for a in range(0, 500, 100)]
    expected = [ask(plain, prompt)[0] for prompt in prompts]
    wrong = []
    with Folder() as folder, server(folder) as one, server(folder, host_memory="64MiB") as two:

        def client(of, seed):
            order = random.Random(seed)
            for _ in range(10):
                i = order.randrange(len(prompts))
                if ask(of, prompts[i])[0] != expected[i]:
                    wrong.append(i)

        threads = [threading.Thread(target=client, args=(of, seed)) for seed, of in enumerate((one, two, one, two))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert "damaged" not in one.log + two.log
        known = [ask(of, TOKENS[50:450])[1] for of in (one, two)]
        assert max(known) < 400
        assert ask(two, TOKENS[50:450])[1] == 399


def directories_that_cannot_be_used():
    with Folder() as folder:
        open(folder, "w").close()
        for path, words in ((folder, "is no directory"), (os.path.join(folder, "in"), "cannot be made")):
            one = Mekik(cache="prefix", cache_keys=f'disk = "{path}"', wait=False)
            assert one.end() in (1, 2) and words in one.log, one.log
        os.remove(folder)
        os.mkdir(folder, 0o777)
        os.chmod(folder, 0o777)
        one = Mekik(cache="prefix", cache_keys=f'disk = "{folder}"', wait=False)
        assert one.end() in (1, 2) and "others may write there" in one.log, one.log


def a_full_disk():
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "none", folder], stderr=subprocess.DEVNULL).returncode != 0:
            print("     (not run: a small disk cannot be mounted here)")
            return
        try:
            with server(folder) as one:
                expected, _ = ask(plain, TOKENS)
                assert ask(one, TOKENS)[0] == expected
                assert ask(one, TOKENS)[0] == expected
                assert "No space left on device" in one.log, one.log
                assert one.log.count("No space left") == 1
        finally:
            subprocess.run(["umount", folder], check=True)


def recurrent_states():
    prompt = [(7 * i + i // 9) % 70 + 5 for i in range(61)]
    for name in ("lfm2-plain", "mamba2-plain", "qwen3_next-plain"):
        model = os.path.join(TINY, name)
        body = {"model": "smol", "prompt": prompt, "max_tokens": 6, "temperature": 0, "logprobs": 3, "ignore_eos": True}
        with Folder() as folder:
            answers = []
            for _ in range(2):
                with server(folder, model=model, block_tokens=8) as one:
                    answer = one.post("/v1/completions", body)
                    answers.append((answer["choices"][0]["logprobs"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]))
            assert answers == [(answers[0][0], 0), (answers[0][0], len(prompt) - 1)], (name, answers)


def forms_of_keys_and_values():
    """Blocks of integers come back as they went; those of one form are not taken for another's; alone and beside others is the same."""
    prompt = [(7 * i + i // 9) % 70 + 5 for i in range(61)]
    model = os.path.join(TINY, "gemma2-plain")
    body = {"model": "smol", "prompt": prompt, "max_tokens": 6, "temperature": 0, "logprobs": 3, "ignore_eos": True}

    def answer_of(one, **fields):
        answer = one.post("/v1/completions", {**body, **fields})
        return answer["choices"][0]["logprobs"], answer["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0)

    with Folder() as folder:
        for form in ("q8_head", "q4_head"):
            kv = ("--set", f"cache.kv={form}")
            with Mekik(*kv, model=model, block_tokens=16, max_batch_tokens=16) as bare:
                expected, _ = answer_of(bare)
                neighbours = [threading.Thread(target=answer_of, args=(bare,), kwargs={"prompt": prompt[i:], "max_tokens": 20}) for i in (3, 20)]
                for neighbour in neighbours:
                    neighbour.start()
                assert answer_of(bare)[0] == expected
                for neighbour in neighbours:
                    neighbour.join()
            with server(folder, *kv, model=model, block_tokens=16) as one:
                assert answer_of(one) == (expected, 0), form
                assert answer_of(one) == (expected, len(prompt) - 1), form
                longer, cached = answer_of(one, prompt=prompt[:-5] + [9, 8, 7])
                assert cached == len(prompt) - 5, cached
            with Mekik(*kv, model=model) as bare:
                assert answer_of(bare, prompt=prompt[:-5] + [9, 8, 7])[0] == longer, form
            with server(folder, *kv, model=model, block_tokens=16) as one:
                assert answer_of(one) == (expected, len(prompt) - 1), form


def they_end():
    assert plain.stop() == 0


main([after_an_end, after_a_kill, killed_while_it_writes, damaged_values, budget, budget_of_processes, theirs_stays, two_processes, directories_that_cannot_be_used,
      a_full_disk, recurrent_states, forms_of_keys_and_values, they_end])
