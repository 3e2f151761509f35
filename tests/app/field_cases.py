#!/usr/bin/env python3
"""Faults that users of other engines met (CASES.md, where it is present), tried on the whole program. Each check carries its row."""
import json
import os
import subprocess
import time

import harness
import tiny_model
from harness import good, mekik, need

VOCABULARIES = {"llama-3": "llama-bpe", "qwen2": "qwen2", "llama-2": "llama-spm"}


def case(*path):
    return need(os.path.join(harness.CASES, *path), os.path.join("the folder of cases:", *path))


def model_of(vocabulary):
    """The file of a row's vocabulary, or None where it is not on this machine."""
    if vocabulary.startswith(("smollm2", "gemma-3")):
        path = harness.SMOLLM2 if vocabulary.startswith("smollm2") else harness.GEMMA3
    else:
        path = os.path.join(harness.CASES, "vocab", f"ggml-vocab-{VOCABULARIES[vocabulary.split()[0]]}.gguf")
    return path if os.path.exists(path) else None


def tokens(model, text, *options):
    return json.loads(good(mekik("tokenize", model, "--json", *options, stdin=text)))["tokens"]


def text_of(model, ids, *options):
    """The bytes that detokenize prints, without the line's end."""
    words = [harness.PROGRAM, "detokenize", model, "--tokens", ",".join(map(str, ids)), *options]
    done = subprocess.run(words, capture_output=True, env=harness.environment())
    assert done.returncode == 0, done.stderr
    return done.stdout[:-1]


def tokenizer_rows():
    """B01, B03, B04, B05, B10, B12: ids as the reference tokenizers give them, and the text back from them."""
    with open(case("tokenizer_cases.json")) as file:
        rows = json.load(file)
    checked = 0
    for row in rows:
        model = model_of(row["vocab"])
        if model is None:
            continue
        got = tokens(model, row["text"], *(["--special"] if row["parse_special"] else []))
        assert got == row["ids"], f"{row['row']} {row['vocab']} {row['text']!r}: {got}, expected {row['ids']}"
        # Normalised text comes back normalised, and a space may be spelled as the vocabulary's letter for it.
        if got and row["row"] != "B12" and "\u2581" not in row["text"]:
            assert text_of(model, got).decode() == row["text"], f"{row['row']} {row['vocab']} {row['text']!r} does not come back"
        checked += 1
    assert checked > 40, f"only {checked} rows could be checked"


def special_tokens():
    """B04: special tokens parsed in Gemma's text, and only where asked for."""
    model = need(harness.GEMMA3, "Gemma 3")
    assert tokens(model, "<bos>text<eos>", "--special") == [2, 1005, 1]
    assert tokens(model, "    return x") == [140, 2060, 1123]
    assert len(tokens(model, "<bos>")) > 1


def space_once():
    """B04: the space in front of the text comes once, and not after special tokens."""
    model = case("vocab", "ggml-vocab-llama-spm.gguf")
    assert tokens(model, "<s>Hello", "--special") == [1, 15043]
    assert tokens(model, "Hello", "--add-special") == [1, 15043]


def long_runs():
    """B09: a long run of one letter takes no time."""
    for path, letter, count, expected in [
            (harness.SMOLLM2, "a", 100000, [46880] * 25000), (harness.GEMMA3, "a", 100000, [128820] * 12500),
            (os.path.join(harness.CASES, "vocab", "ggml-vocab-llama-bpe.gguf"), "a", 100000, [70540] * 12500),
            (os.path.join(harness.CASES, "vocab", "ggml-vocab-qwen2.gguf"), "a", 100000, [69440] * 12500),
            (os.path.join(harness.CASES, "vocab", "ggml-vocab-llama-spm.gguf"), "a", 100000, 25002), (harness.SMOLLM2, "_", 50000, 1563)]:
        if not os.path.exists(path):
            continue
        start = time.monotonic()
        tokens(path, "a")
        opening = time.monotonic() - start
        start = time.monotonic()
        got = tokens(path, letter * count)
        seconds = time.monotonic() - start - opening
        assert (len(got) if isinstance(expected, int) else got) == expected, f"{path}: {len(got)} tokens"
        # Far above what it takes, and far below what quadratic time takes.
        assert seconds < 5, f"{path}: {seconds:.2f} s"


def parts_of_characters():
    """B10: a token that ends inside a character has bytes, and as text one U+FFFD."""
    model = case("vocab", "ggml-vocab-llama-bpe.gguf")
    assert text_of(model, [15722]) == b"\xe6\xad"
    assert json.loads(text_of(model, [15722], "--json"))["text"] == "\ufffd"
    assert text_of(model, [15722, 103]).decode() == "歪"
    pieces = json.loads(good(mekik("tokenize", model, "--json", stdin="歪")))["pieces"]
    assert pieces == ["\ufffd", "\ufffd"], pieces


def split_patterns():
    """B13: an unknown or absent pattern of words is an error that names it, for every verb that needs text."""
    with harness.scratch() as folder:
        unknown, absent = harness.tiny(folder, "unknown.gguf", pre="nosuch"), harness.tiny(folder, "absent.gguf", pre=None)
        for verb in (["tokenize"], ["run", "-p", "hi"], ["check"]):
            for model, said in [(unknown, 'tokenizer.ggml.pre = "nosuch" is not known'), (absent, "tokenizer.ggml.pre is missing")]:
                done = mekik(verb[0], model, *verb[1:], stdin="hi")
                assert done.returncode == 1 and said in done.stderr, (verb, done)
                assert done.stderr.count("\n") == 1, f"more than one line: {done.stderr}"


def bytes_without_tokens():
    """A vocabulary that lacks bytes is warned about when a text has them: once."""
    model = need(harness.SMOLLM2, "SmolLM2")
    quiet = mekik("tokenize", model, stdin="plain text")
    assert quiet.stderr == "", quiet.stderr
    loud = mekik("tokenize", model, stdin="a\x04b \x04 \x06")
    assert loud.stderr.count("warning") == 1 and " 04 06" in loud.stderr, loud.stderr


def render(model, messages, *options, code=0):
    with harness.scratch() as folder:
        path = harness.write(folder, "messages.json", json.dumps(messages))
        done = mekik("template", model, "--messages", path, *options)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def template(name):
    return case("templates", name + ".jinja")


def content_parts():
    """B21: parts of text are joined by nothing, null is empty, other parts are refused."""
    model = need(harness.SMOLLM2, "SmolLM2")
    parts = [{"type": "text", "text": "part A"}, {"type": "text", "text": "part B"}]
    assert "<|im_start|>user\npart Apart B<|im_end|>" in render(model, [{"role": "user", "content": parts}])
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    shown = render(model, [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": calls}])
    assert "None" not in shown and "null" not in shown, shown
    assert "image_url" in render(model, [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], code=1)


def call_arguments():
    """B24: arguments of a call as text or as an object give the same prompt, for every published template."""
    with harness.scratch() as folder:
        model, folder_of_templates = harness.tiny(folder), case("templates")
        shown = 0
        for name in sorted(os.listdir(folder_of_templates)):
            prompts = []
            for arguments in ({"city": "Zürich", "n": 1}, '{"city": "Zürich", "n": 1}'):
                messages = [{"role": "user", "content": "Weather?"},
                            {"role": "assistant", "content": None,
                             "tool_calls": [{"id": "call00001", "type": "function", "function": {"name": "get", "arguments": arguments}}]},
                            {"role": "tool", "tool_call_id": "call00001", "name": "get", "content": "sunny"}]
                path = harness.write(folder, "messages.json", json.dumps(messages))
                done = mekik("template", model, "--messages", path, "--template", os.path.join(folder_of_templates, name))
                said = [line.split(" ", 1)[1] for line in done.stderr.splitlines()]  # without the time of a warning
                prompts.append((done.returncode, done.stdout, said))
            assert prompts[0] == prompts[1], f"{name}: {prompts}"
            shown += "Zürich" in prompts[0][1]
            if name == "Qwen-Qwen2.5-7B-Instruct.jinja":
                assert '"arguments": {"city": "Zürich", "n": 1}' in prompts[0][1], prompts[0]
        assert shown > 30, f"only {shown} templates show calls"


def call_arguments_damaged():
    """B24: arguments that are no JSON are refused."""
    with harness.scratch() as folder:
        calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}}]
        said = render(harness.tiny(folder), [{"role": "assistant", "content": "", "tool_calls": calls}], code=1)
        assert "messages[0].tool_calls: arguments are not valid JSON" in said, said


def probes():
    """B14, B17, B18, B25: the language of templates, as the probes say, through the program."""
    with open(case("jinja_probes.json")) as file:
        rows = [row for row in json.load(file) if row["row"] in ("B14", "B17", "B18", "B25")]
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        # The messages of the probes; their other variables come from {% set %} in front.
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}, {"role": "user", "content": "bye"}]
        path = harness.write(folder, "messages.json", json.dumps(messages))
        before = ("{% set s = 'abcdef' %}{% set u = 'é🦀' %}{% set n = 2 %}{% set items = ['a', 'b', 'c', 'd'] %}"
                  "{% set d = {'b': 1, 'a': [1, 2], 's': '<é/—\u2028>&\\''} %}")
        for row in rows:
            if row["extra_context"]:
                continue
            source = harness.write(folder, "probe.jinja", before + row["template"])
            done = mekik("template", model, "--messages", path, "--template", source)
            if "out" in row:
                assert done.returncode == 0 and done.stdout == row["out"], (row, done)
            else:
                assert done.returncode == 1 and "probe.jinja:1:" in done.stderr and "uid=" not in done.stdout, (row, done)
    assert len(rows) > 15


def refusing_templates():
    """B30: what a template itself refuses is an error with its words."""
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        twice = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
        said = render(model, twice, "--template", template("mistralai-Mistral-Nemo-Instruct-2407"), code=1)
        assert "roles must alternate" in said, said
        system = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
        said = render(model, system, "--template", template("google-gemma-2-2b-it"), code=1)
        assert "System role not supported" in said, said


def sampled(model, *words, **options):
    sets = [word for key, value in options.items() for word in ("--set", f"sampler.0.{key}={value}")]
    command = ["run", model, "--tokens", "72,105", "--max-tokens", "24", "--ignore-eos", "--json", *words, *sets]
    return json.loads(good(mekik(*command)))["tokens"]


def limits_of_sampling():
    """B60, B86, B90, B92: the smallest and largest settings mean what they say, from the command line to the tokens."""
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        greedy = sampled(model, "--temperature", "0")
        for temperature in ("1e-12", "1e-45"):
            assert sampled(model, "--temperature", temperature) == greedy, temperature
        assert len(sampled(model, "--temperature", "1e9")) == 24
        seeded = sampled(model, "--seed", "5")
        assert seeded == sampled(model, "--seed", "5") and seeded != greedy
        assert seeded != sampled(model, "--seed", "6") and sampled(model, "--seed", "0") == sampled(model, "--seed", "0")
        assert sampled(model) != sampled(model), "without a seed two answers are the same"
        for keeps_all in ({"top_k": 0}, {"top_k": -1}, {"top_k": 1000000000}, {"top_p": 1.0}, {"min_p": 0.0}):
            assert sampled(model, "--seed", "5", **keeps_all) == seeded, keeps_all
        for keeps_one in ({"top_k": 1}, {"top_p": 0}, {"min_p": 1}):
            assert sampled(model, "--seed", "5", **keeps_one) == greedy, keeps_one
        punished = sampled(model, "--temperature", "0", frequency_penalty=2.0)
        assert punished != greedy
        assert sampled(model, "--temperature", "0", frequency_penalty=2.0, repeat_last_n=0) == greedy
        for whole in (-1, 100000):
            assert sampled(model, "--temperature", "0", frequency_penalty=2.0, repeat_last_n=whole) == punished


def broken_numbers():
    """B118: weights that are no numbers end in an error that says so, not in tokens."""
    done = mekik("run", case("malformed", "nan_weights.gguf"), "--tokens", "5,6", "--max-tokens", "4", "--json")
    assert done.returncode == 1 and "NaN" in done.stderr and done.stdout == "", done


def rows_and_blocks():
    """B119: a row that is no multiple of its type's block is an error with both numbers."""
    with harness.scratch() as folder:
        q4_k = 12
        model = harness.tiny(folder, types={"blk.0.ffn_down.weight": (q4_k, [96, 32])})
        for verb in (["model"], ["run", "-p", "hi"], ["check"]):
            done = mekik(verb[0], model, *verb[1:])
            assert done.returncode == 1 and "96" in done.stderr and "256" in done.stderr and "ffn_down" in done.stderr, done


def environment_variables():
    """B138: no variable of the environment beats a file or a flag; only MEKIK_PLUGIN_PATH is read."""
    with harness.scratch() as folder:
        harness.tiny(folder)
        path = harness.write(folder, "p.toml", '[model]\npath = "tiny.gguf"\n[server]\nlisten = ["tcp://127.0.0.1:1"]\n')
        env = harness.environment(PORT="9", HOST="0.0.0.0", MEKIK_PORT="9", MEKIK_SERVER_LISTEN="tcp://127.0.0.1:9", MODEL="x", THREADS="7")
        shown = good(mekik("serve", path, "--print-config", env=env))
        assert f'listen = ["tcp://127.0.0.1:1"]  # {path}:4:10' in shown, shown
        assert "threads = 0  # default" in shown, shown
        flag = good(mekik("serve", path, "--print-config", "--set", 'server.listen=["tcp://127.0.0.1:3"]', env=env))
        assert 'listen = ["tcp://127.0.0.1:3"]  # --set:1:15' in flag, flag


def spellings_of_toml():
    """B140: a BOM and CRLF are fine."""
    with harness.scratch() as folder:
        harness.tiny(folder)
        path = harness.write(folder, "p.toml", b'\xef\xbb\xbf[model]\r\npath = "tiny.gguf"\r\n[scheduler]\r\nmax_sequences = 3\r\n')
        assert f"max_sequences = 3  # {path}:4:17" in good(mekik("check", path, "--print-config"))


def context_and_pool():
    """B141: the longest request and the tokens of all together are printed, and a context shorter than the model's is said."""
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        shown = good(mekik("check", model, "--set", "scheduler.max_sequences=4"))
        # The context is not divided by the sequences.
        assert f"up to 4 sequences at once, each of up to {tiny_model.CONTEXT} tokens" in shown and "256 tokens in all" in shown, shown
        assert "note: the model was made for" not in shown
        less = good(mekik("check", model, "--set", "cache.memory=4KiB", "--set", "cache.block_tokens=16"))
        assert "note: the model was made for 64 tokens, but the cache holds 32" in less, less


def same_text_with_each_instruction_set():
    """B145: the same greedy text, whichever kernels are forced."""
    shown = good(mekik("--version")).split("CPU, ")[1].split()
    for model, words in [(harness.SMOLLM2, ["-p", "Why is the sky blue?", "--max-tokens", "16"]), (None, ["--tokens", "1,2,3", "--max-tokens", "16"])]:
        with harness.scratch() as folder:
            path = model or harness.tiny(folder)
            if not os.path.exists(path):
                continue
            answers = {isa: json.loads(good(mekik("run", path, "--json", "--temperature", "0", "--set", f"backend.isa={isa}", *words)))["tokens"]
                       for isa in [*shown, "auto"]}
            assert len(set(map(str, answers.values()))) == 1, answers
    assert shown[-1] == "portable", shown


CHECKS = [tokenizer_rows, special_tokens, space_once, long_runs, parts_of_characters, split_patterns, bytes_without_tokens, probes,
          content_parts, call_arguments, call_arguments_damaged, refusing_templates, limits_of_sampling, broken_numbers, rows_and_blocks, environment_variables,
          spellings_of_toml, context_and_pool, same_text_with_each_instruction_set]
harness.main([(check.__doc__.split(":")[0] + ": " + check.__name__, check) for check in CHECKS])
