"""The cache that keeps prefixes, on the real model: what is known is not computed again, wherever the known part ends; every answer is the
one of a server that keeps nothing."""
import json
import random
import threading

from harness import main
from real import Mekik, need_model

need_model()
kept = Mekik(cache="prefix", memory="64MiB")
plain = Mekik()
TEXT = "".join(f"In the year {1500 + i} the clock on tower number {i * 7} rang {i % 12} times, and nobody knew why. " for i in range(40))
TOKENS = plain.post("/tokenize", {"prompt": TEXT})["tokens"][:1000]
assert len(TOKENS) == 1000


def ask(server, tokens, **fields):
    """The text of the answer, and how many tokens of the prompt were known."""
    answer = server.complete(tokens, max_tokens=6, **fields)
    return answer["choices"][0]["text"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def the_same_prompt():
    text, known = ask(kept, TOKENS)
    assert known == 0
    assert ask(kept, TOKENS) == (text, len(TOKENS) - 1)
    assert ask(plain, TOKENS)[0] == text


def another_end():
    """Beginnings of every length around the border of a block."""
    for cut in (31, 32, 33, 640, 641, 657, 671, 672, 673):
        prompt = TOKENS[:cut] + [(t + 1) % 49000 for t in TOKENS[cut:cut + 50]]
        text, known = ask(kept, prompt)
        assert known == cut, (cut, known)
        assert text == ask(plain, prompt)[0], cut


def a_conversation():
    """The second turn begins with the first and its answer."""
    messages = [{"role": "user", "content": "Name three colours. " * 20}]
    first = kept.post("/v1/chat/completions", {"model": "smol", "messages": messages, "temperature": 0, "max_tokens": 40})
    messages += [first["choices"][0]["message"], {"role": "user", "content": "And three more?"}]
    body = {"model": "smol", "messages": messages, "temperature": 0, "max_tokens": 20}
    second = kept.post("/v1/chat/completions", body)
    known = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert known >= first["usage"]["prompt_tokens"] + first["usage"]["completion_tokens"] - 1, (known, first["usage"])
    assert second["choices"][0]["message"]["content"] == plain.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]


def while_the_owner_runs():
    prompt = [(t + 7) % 49000 for t in TOKENS[:400]]
    body = {"model": "smol", "prompt": prompt, "temperature": 0, "max_tokens": 300, "ignore_eos": True}
    owner = threading.Thread(target=lambda: kept.stream("/v1/completions", body))
    owner.start()
    try:
        for _ in range(200):
            text, known = ask(kept, prompt + [5, 6, 7])
            if known >= 400:
                break
        assert owner.is_alive(), "the owner ended before it was looked at"
        assert 400 <= known < 403, known
    finally:
        owner.join()
    assert text == ask(plain, prompt + [5, 6, 7])[0]


def more_than_fits():
    """Three times as much as there is memory for, from four clients: the longest unused goes, nobody gets an error."""
    draw = random.Random(3)
    with Mekik(cache="prefix", memory="16MiB") as small:
        prompts = [TOKENS[a:a + 100 + draw.randrange(200)] for a in range(0, 600, 60)]
        expected = [ask(plain, prompt)[0] for prompt in prompts]
        wrong = []

        def client(seed):
            order = random.Random(seed)
            for _ in range(12):
                i = order.randrange(len(prompts))
                text, _ = ask(small, prompts[i])
                if text != expected[i]:
                    wrong.append((i, text))

        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        assert small.metric("mekik_prefix_cache_hits_total") > 0


def tenants():
    """What one key's requests left is not known to another's, unless the server says so; a salt parts requests of one key."""
    body = {"model": "smol", "prompt": TOKENS[:200], "temperature": 0, "max_tokens": 4}

    def known(server, key, **fields):
        code, _, text = server.request("POST", "/v1/completions", dict(body, **fields), headers={"Authorization": "Bearer " + key})
        assert code == 200, text
        return json.loads(text)["usage"]["prompt_tokens_details"]["cached_tokens"]

    keys = ("--set", 'server.api_key="sk-a"', "--set", 'server.api_keys=["sk-b"]')
    with Mekik(*keys, cache="prefix") as apart:
        assert [known(apart, key) for key in ("sk-a", "sk-b", "sk-a", "sk-b")] == [0, 0, 199, 199]
        assert [known(apart, "sk-a", cache_salt=salt) for salt in ("x", "y", "x")] == [0, 0, 199]
    with Mekik(*keys, "--set", "server.share_prefixes=true", cache="prefix") as shared:
        assert [known(shared, key) for key in ("sk-a", "sk-b")] == [0, 199]
        assert [known(shared, "sk-a", cache_salt="x"), known(shared, "sk-b", cache_salt="x")] == [0, 199]


def they_end():
    assert [kept.stop(), plain.stop()] == [0, 0]


main([the_same_prompt, another_end, a_conversation, while_the_owner_runs, more_than_fits, tenants, they_end])
