"""The cache that keeps prefixes, on models with recurrent layers, with and without attention beside them: a prompt that goes on from a kept
state gets the answer of a server that keeps nothing, to the last bit of its log-probabilities."""
import os

from harness import main
from real import Mekik

TINY = os.path.abspath("tests/models/tiny")
MODELS = ["lfm2-plain", "mamba2-plain", "falcon_mamba-plain", "qwen3_next-plain", "falcon_h1-plain", "jamba-plain", "nemotron_h-plain",
          "granitemoehybrid-plain", "zamba2-plain", "bamba-plain"]
PROMPT = [(7 * i + i // 9) % 70 + 5 for i in range(61)]


def ask(server, prompt, **fields):
    """The likeliest tokens of every step, and how many tokens of the prompt were known."""
    body = {"model": "smol", "prompt": prompt, "max_tokens": 6, "temperature": 0, "logprobs": 3, "ignore_eos": True, **fields}
    answer = server.post("/v1/completions", body)
    return answer["choices"][0]["logprobs"]["top_logprobs"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def chosen(tops):
    return [int(max(top, key=top.get).removeprefix("token_id:")) for top in tops]


def goes_on_from_states(name):
    model = os.path.join(TINY, name)
    with Mekik(model=model, cache="prefix", block_tokens=8, max_batch_tokens=24) as kept, Mekik(model=model, max_batch_tokens=24) as plain:
        first, known = ask(kept, PROMPT)
        assert known == 0
        assert (first, 0) == ask(plain, PROMPT)
        assert ask(kept, PROMPT) == (first, len(PROMPT) - 1)
        turn = PROMPT + chosen(first) + [9, 8, 7, 6]
        answer, known = ask(kept, turn)
        assert known == len(PROMPT) + 5, known  # the answer's last token was never computed
        assert answer == ask(plain, turn)[0]
        branch = PROMPT[:43] + [t % 60 + 9 for t in PROMPT[43:]]
        answer, known = ask(kept, branch)
        assert 32 <= known <= 43, known
        assert answer == ask(plain, branch)[0]
        other = branch[:43] + branch[:17]
        answer, known = ask(kept, other)
        assert known == 43, known  # the place where two had parted
        assert answer == ask(plain, other)[0]
        several, known = ask(kept, turn, n=3, seed=5, temperature=1)
        assert known == len(turn) - 1
        assert several == ask(plain, turn, n=3, seed=5, temperature=1)[0]
        assert kept.metric("mekik_cache_miss_total") == 4


def test_of(name):
    def test():
        goes_on_from_states(name)

    test.__name__ = name
    return test


main([test_of(name) for name in MODELS])
