"""Speculation on the real model: every answer is the one of a server without a drafter, greedy or drawn with a seed, alone or among
others; and copies take fewer steps."""
import threading

from harness import main
from real import MODEL, Mekik, need_model

need_model()
# A draft model that is the model itself is always right.
DRAFTERS = {"ngram": [], "suffix": [], "model": [f"--set=draft.model={MODEL}"]}
plain = Mekik(cache="prefix")
TEXT = ("The committee met on Tuesday to hear the report of the treasurer. The treasurer said that the roof of the mill had cost four "
        "hundred crowns, and that the wheel would cost two hundred more before the winter. ")
PROMPTS = [f"Repeat this text word for word: {TEXT}\n\nHere it is again, word for word: The committee met on", "Once upon a time, there was",
           "1, 2, 3, 4, 5, 6, 7, 8,", "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n", "A list of cities: Rome, Paris,"]
SETTINGS = [{"temperature": 0}, {"temperature": 0.7, "seed": 5}, {"temperature": 1.2, "top_p": 0.9, "seed": 6, "frequency_penalty": 0.3},
            {"temperature": 0, "logprobs": 3}, {"temperature": 0.5, "seed": 7, "stop": [".", "\n\n"]}]


def drafting(name, *words):
    return Mekik(f"--set=draft.use={name}", *DRAFTERS[name], *words, cache="prefix")


def ask(server, prompt, settings, tokens=40):
    answer = server.complete(prompt, max_tokens=tokens, **settings)
    details = answer["usage"].pop("completion_tokens_details", {})
    answer["usage"].pop("prompt_tokens_details")
    return (answer["choices"], answer["usage"]), details


EXPECTED = [[ask(plain, prompt, settings)[0] for settings in SETTINGS] for prompt in PROMPTS]


def the_same_answers(name, *words):
    def check():
        with drafting(name, *words) as server:
            drafted = 0
            for prompt, expected in zip(PROMPTS, EXPECTED):
                for settings, wanted in zip(SETTINGS, expected):
                    got, details = ask(server, prompt, settings)
                    assert got == wanted, (name, prompt, settings, got, wanted)
                    assert details.get("accepted_prediction_tokens", 0) <= wanted[1]["completion_tokens"]
                    drafted += sum(details.values())
            steps = server.metric("mekik_steps_total")
            wrong = []

            def client(i):
                for prompt, expected in zip(PROMPTS, EXPECTED):
                    if ask(server, prompt, SETTINGS[i])[0] != expected[i]:
                        wrong.append((prompt, SETTINGS[i]))

            threads = [threading.Thread(target=client, args=(i,)) for i in range(len(SETTINGS))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not wrong, wrong
            run = server.metric("mekik_spec_decode_num_draft_tokens_total")
            assert run >= drafted
            if words:  # not adaptive: whatever is proposed is run
                assert 0 < server.metric("mekik_spec_decode_num_accepted_tokens_total") <= run
                assert steps < plain.metric("mekik_steps_total")
    check.__name__ = f"the_same_answers_{name}_{len(words)}"
    return check


def they_end():
    assert plain.stop() == 0


main([the_same_answers(name, *words) for name in DRAFTERS for words in [(), ("--set=draft.adaptive=false", "--set=draft.max_drafts=5")]] +
     [they_end])
