#!/usr/bin/env python3
"""Makes hf_vectors.json, what the `tokenizers` package computes for small tokenizers of every kind and texts that are easily got
wrong; hf.cpp compares. The same, with random tokenizers and random texts, and without leaving data behind:

    python3 tests/tokenizers/make_hf_vectors.py                              # writes the vectors
    python3 tests/tokenizers/make_hf_vectors.py --random 600 --seed 7        # seconds; needs build/release/bin/test_tokenizer_serve
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import sentencepiece
from tokenizers import Tokenizer

import hf_catalog
import spm_catalog
from hf_texts import HOSTILE, random_text

HERE = pathlib.Path(__file__).resolve().parent


def expected(tokenizer, text, other):
    """What the library says: ids with special tokens, ids of text that is not trusted, both decodings, and the pair."""
    tokenizer.encode_special_tokens = False
    ids = tokenizer.encode(text, add_special_tokens=True).ids
    answer = {"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True), "shown": tokenizer.decode(ids, skip_special_tokens=False)}
    tokenizer.encode_special_tokens = True
    answer["plain"] = tokenizer.encode(text, add_special_tokens=False).ids
    if other is not None:
        pair = tokenizer.encode(text, other)
        answer["pair"], answer["types"] = pair.ids, pair.type_ids
    return answer


def write_vectors(path):
    made = hf_catalog.make_models()
    rows = []
    for number, (name, model, rest) in enumerate(hf_catalog.catalog(made, hf_catalog.charsmap(False))):
        tokenizer = Tokenizer.from_str(json.dumps({**rest, "model": made[model]}))
        chosen = range(len(HOSTILE)) if number < 27 else range(number % 3, len(HOSTILE), 3)
        cases = []
        for i in chosen:
            other = HOSTILE[(i * 7 + 3) % len(HOSTILE)] if (i + number) % 6 == 0 else None
            answer = expected(tokenizer, HOSTILE[i], other)
            if answer["plain"] == answer["ids"]:
                del answer["plain"]
            if answer["shown"] == answer["decoded"]:
                del answer["shown"]
            cases.append({"text": i, **({"other": (i * 7 + 3) % len(HOSTILE)} if other is not None else {}), **answer})
        rows.append({"name": name, "model": model, "rest": rest, "cases": cases})
    used = {row["model"] for row in rows}
    whole = {"texts": HOSTILE, "models": {k: v for k, v in made.items() if k in used}, "tokenizers": rows}
    path.write_text(json.dumps(whole, ensure_ascii=True, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n", encoding="ascii")
    print(path, path.stat().st_size, "bytes,", sum(len(row["cases"]) for row in rows), "cases")


def write_sentencepiece(path):
    hf_catalog.charsmap(False)  # writes the rules
    rows = []
    for name, options in spm_catalog.fixed():
        model = spm_catalog.train(**options)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        cases = [{"text": i, "ids": processor.encode(text)} for i, text in enumerate(HOSTILE) if "\0" not in text]
        rows.append({"name": name, "model": spm_catalog.encoded(model), "cases": cases})
    path.write_text(json.dumps({"texts": HOSTILE, "tokenizers": rows}, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n", encoding="ascii")
    print(path, path.stat().st_size, "bytes")


def compare_sentencepiece(arguments, rng):
    options = spm_catalog.random_options(rng)
    try:
        model = spm_catalog.train(**options)
    except (RuntimeError, OSError, ValueError):
        return 0
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    served = Served(arguments.serve, {"sentencepiece_base64": spm_catalog.encoded(model), "tokenizer_config": {"legacy": True}})
    if served.said != "ready":
        print("REFUSED", served.said, options, flush=True)
        return 1
    bad = 0
    for _ in range(60):
        text = random_text(rng)
        right, got = processor.encode(text), served.ask(text=text)
        if not isinstance(got, dict) or got["plain"] != right:
            bad += 1
            print(f"DIFFERENT sentencepiece {options}\n  text {text!r}\n  right {[processor.id_to_piece(i) for i in right]}\n  got   "
                  f"{got if isinstance(got, str) else [processor.id_to_piece(i) for i in got['plain']]}", flush=True)
            if bad >= 2 or isinstance(got, str):
                break
    served.close()
    return bad


class Served:
    def __init__(self, program, files):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8")
        json.dump({"hf": files}, self.file)
        self.file.flush()
        self.process = subprocess.Popen([program, self.file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.said = self.read()

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else f"ended with {self.process.wait()}"

    def ask(self, **question):
        self.process.stdin.write((json.dumps(question) + "\n").encode())
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(served, tokenizer, rng, count, where):
    bad = 0
    for _ in range(count):
        text = random_text(rng)
        other = random_text(rng) if rng.random() < .2 else None
        try:
            right = expected(tokenizer, text, other)
        except BaseException as error:  # the library's panics are BaseException
            if isinstance(error, KeyboardInterrupt):
                raise
            continue
        got = served.ask(text=text, **({"pair": other} if other is not None else {}))
        wrong = [key for key in right if not isinstance(got, dict) or got[key] != right[key]]
        if wrong:
            bad += 1
            print(f"DIFFERENT {wrong} {where}\n  text {text!r} other {other!r}\n  right {right[wrong[0]]!r}\n  got   {got if isinstance(got, str) else got[wrong[0]]!r}", flush=True)
            if bad >= 2 or isinstance(got, str):
                break
    return bad


def odd_tokens(tokenizer, rest):
    """Whether an added token is nothing once it is normalised, or the same as another: the library then cuts at every character, or
    takes any of the two."""
    normal = lambda text: tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer is not None else text
    patterns = [normal(token["content"]) for token in rest["added_tokens"] if token["normalized"]]
    return "" in patterns or len(set(patterns)) < len(patterns)


def run_random(arguments):
    rng = random.Random(arguments.seed)
    made = hf_catalog.make_models()
    charsmaps = [hf_catalog.charsmap(False), hf_catalog.charsmap(True)]
    fixed = hf_catalog.catalog(made, charsmaps[1])
    end, bad, runs, refused = time.time() + arguments.random, 0, 0, 0
    while time.time() < end and bad < arguments.stop:
        if rng.random() < arguments.sentencepiece:
            bad += compare_sentencepiece(arguments, rng)
            runs += 1
            continue
        name, model, rest = rng.choice(fixed) if rng.random() < .3 else ("random", *hf_catalog.random_pipeline(rng, made, charsmaps))
        whole = {**rest, "model": made[model]}
        try:
            tokenizer = Tokenizer.from_str(json.dumps(whole))
        except BaseException:
            refused += 1
            continue
        if odd_tokens(tokenizer, rest):
            continue
        served = Served(arguments.serve, {"tokenizer_json": whole})
        shown = {k: v for k, v in rest.items() if v and k not in ("version",)}
        if served.said != "ready":
            bad += 1
            print("REFUSED", served.said, model, str(shown)[:600], flush=True)
        else:
            runs += 1
            bad += compare(served, tokenizer, rng, 40, f"{name} {model} {str(shown)[:4000]}")
        served.close()
    print(f"{runs} tokenizers, 40 texts each; {refused} refused by the library; {bad} differences")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=float, help="compare for so many seconds instead of writing vectors")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stop", type=int, default=10, help="differences to stop at")
    parser.add_argument("--sentencepiece", type=float, default=0.2, help="part of the tokenizers that are SentencePiece's")
    parser.add_argument("--serve", default=str(HERE.parent.parent / "build/release/bin/test_tokenizer_serve"))
    arguments = parser.parse_args()
    if arguments.random:
        return run_random(arguments)
    write_vectors(HERE / "hf_vectors.json")
    write_sentencepiece(HERE / "spm_vectors.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
