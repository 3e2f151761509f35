"""Small SentencePiece models with odd options."""
import base64
import io

import sentencepiece

from hf_texts import CORPUS

RULES = "/tmp/mekik-rules.tsv"


def train(**options):
    out = io.BytesIO()
    chosen = dict(vocab_size=300, model_type="unigram", minloglevel=2, hard_vocab_limit=False, normalization_rule_name="identity", num_threads=1)
    chosen.update(options)
    if "normalization_rule_tsv" in chosen:
        del chosen["normalization_rule_name"]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS * 3), model_writer=out, **chosen)
    return out.getvalue()


def fixed():
    """(name, options): checked in, so without the big tables."""
    return [
        ("llama", dict(model_type="bpe", vocab_size=560, byte_fallback=True, remove_extra_whitespaces=False)),
        ("gemma", dict(model_type="bpe", vocab_size=560, byte_fallback=True, remove_extra_whitespaces=False, add_dummy_prefix=False,
                       user_defined_symbols=["<x>", "▁▁", "▁▁▁▁", "\n", "\n\n", "Hello"])),
        ("bpe unknown", dict(model_type="bpe", vocab_size=260, character_coverage=0.98)),
        ("unigram", dict(normalization_rule_tsv=RULES, control_symbols=["<mask>"])),
        ("unigram bytes", dict(byte_fallback=True, vocab_size=560, user_defined_symbols=["NewToken", "hello", "<|end|>"])),
        ("suffix", dict(treat_whitespace_as_suffix=True, character_coverage=0.98)),
    ]


def random_options(rng):
    options = dict(model_type=rng.choice(["bpe", "unigram"]), vocab_size=rng.choice([260, 400, 600]))
    options["normalization_rule_name"] = rng.choice(["identity", "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])
    for flag in ("add_dummy_prefix", "remove_extra_whitespaces", "byte_fallback", "treat_whitespace_as_suffix", "split_digits", "split_by_whitespace",
                 "split_by_unicode_script", "allow_whitespace_only_pieces"):
        if rng.random() < .4:
            options[flag] = rng.random() < .5
    if options.get("byte_fallback"):
        options["vocab_size"] += 256
    if rng.random() < .5:
        options["user_defined_symbols"] = rng.sample(["<x>", "Hello", "NewToken", "▁▁", "\n", "  ", "é", "hello▁", "aa", "<|end|>", "ﬁ"], rng.randrange(1, 5))
    if rng.random() < .5:
        options["character_coverage"] = rng.choice([0.98, 0.985, 0.99])
    return options


def encoded(model):
    return base64.b64encode(model).decode()
