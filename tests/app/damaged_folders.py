"""Folders as the field damages them: each change to a small model of tests/models/tiny ends in exit code 1 and one line that names the file or
the key, and never in an answer, a hang or a lie about the cause."""
import json
import os
import re
import shutil
import struct

import harness
from harness import good, mekik

TINY = os.path.join(harness.SOURCE, "tests", "models", "tiny")
SECONDS = 60


def copy(folder, name):
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(os.path.join(TINY, name), path)
    return path


def configured(**keys):
    """Keys of config.json; None takes one out."""
    def change(model):
        path = os.path.join(model, "config.json")
        with open(path) as file:
            config = json.load(file)
        config.update(keys)
        with open(path, "w") as file:
            json.dump({k: v for k, v in config.items() if v is not None}, file)
    return change


def written(name, content):
    return lambda model: harness.write(model, name, content)


def fifo(name):
    def change(model):
        path = os.path.join(model, name)
        if os.path.exists(path):
            os.remove(path)
        os.mkfifo(path)
    return change


# What is changed in which model, and what the line says.
REFUSED = [
    ("llama-plain", fifo("config.json"), "config.json: is not a regular file"),
    ("llama-plain", fifo("model.safetensors"), "model.safetensors: is not a regular file"),
    ("llama-plain", written("config.json", "null"), "config.json: is not a JSON object"),
    ("llama-plain", written("config.json", "[]"), "config.json: is not a JSON object"),
    ("llama-plain", written("config.json", b"\xef\xbb\xbf{}"), "config.json: begins with a byte order mark"),
    ("llama-plain", written("config.json", " " * (65 << 20)), "config.json: has 68157440 bytes; at most 67108864 are read"),
    ("llama-plain", written("config.json", "version https://git-lfs.github.com/spec/v1\n"), "config.json: is a Git LFS pointer"),
    ("llama-plain", configured(max_position_embeddings=0), '"max_position_embeddings" is 0; it must be a whole number from 1'),
    ("llama-plain", configured(max_position_embeddings=-1), '"max_position_embeddings" is -1; it must be'),
    ("llama-plain", configured(max_position_embeddings=3.5), '"max_position_embeddings" is 3.5E0; it must be'),
    ("llama-plain", configured(max_position_embeddings=1 << 63), '"max_position_embeddings" is 9223372036854775808; it must be'),
    ("llama-plain", configured(hidden_size=0), '"hidden_size" is 0; it must be'),
    ("llama-plain", configured(num_key_value_heads="x"), 'the file says: "num_key_value_heads" is "x"'),
    ("llama-plain", configured(rms_norm_eps=-1), 'rms_norm needs a number of at least 0 here, not -1; the file says: "rms_norm_eps" is -1'),
    ("llama-plain", configured(rope_scaling="linear", rope_parameters=None), 'metadata key "rope_scaling" is "linear", not an object'),
    ("llama-plain", configured(rope_parameters=[]), 'metadata key "rope_parameters" is [], not an object'),
    ("llama-plain", configured(architectures=["a\x1b[31mb\rc"]), "'a\\x1b[31mb\\x0dc'"),
]


def refused():
    with harness.scratch() as folder:
        for name, change, words in REFUSED:
            model = copy(folder, name)
            change(model)
            done = mekik("logits", model, "--tokens", "5,6,7", timeout=SECONDS)
            assert done.returncode == 1 and done.stdout == "", (name, words, done)
            assert words in done.stderr, (words, done.stderr)


def a_model_for_embeddings():
    """Its head is often not stored, though it is not tied: then it has no logits, and all else."""
    with harness.scratch() as folder:
        model = copy(folder, "mistral_embedding-last")
        configured(tie_word_embeddings=False)(model)
        shown = json.loads(good(mekik("embed", model, "--tokens", "5,6,7", "--json")))
        assert len(shown["embedding"]) > 0, shown
        refused = mekik("logits", model, "--tokens", "5,6,7", "--set", "model.task=generate")
        assert refused.returncode != 0 and "lm_head.weight" in refused.stderr, refused.stderr


def what_is_well():
    """What the hub's folders have beside what a page reads is no mistake."""
    keys = dict(tie_word_embeddings=True, rope_scaling=None, use_cache=True, eos_token_id=[1, 2])
    with harness.scratch() as folder:
        model = copy(folder, "llama-plain")
        before = good(mekik("logits", model, "--tokens", "5,6,7"))
        configured(**keys)(model)
        assert good(mekik("logits", model, "--tokens", "5,6,7")) == before


def numbers_that_are_none():
    """Weights of NaN are an error, not a row of null."""
    with harness.scratch() as folder:
        model = copy(folder, "llama-plain")
        path = os.path.join(model, "model.safetensors")
        with open(path, "rb") as file:
            data = file.read()
        size = struct.unpack("<Q", data[:8])[0]
        with open(path, "wb") as file:
            file.write(data[:8 + size] + b"\xff" * (len(data) - 8 - size))
        for words in (["logits", model, "--tokens", "5,6"], ["embed", model, "--tokens", "5,6", "--json", "--set", "model.task=embed"]):
            done = mekik(*words)
            assert done.returncode == 1 and re.search("not a number|damaged", done.stderr), (words, done)


harness.main([(check.__name__, check) for check in (refused, a_model_for_embeddings, what_is_well, numbers_that_are_none)])
