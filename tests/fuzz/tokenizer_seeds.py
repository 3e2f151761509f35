"""Writes inputs of tokenizer.cpp into the folder given: small vocabularies of both kinds, as bytes and as JSON, and text."""
import json
import os
import sys

SPACE = "\u2581"


def sentencepiece(tokens, text, prefix=0, parts=()):
    out = bytes([0, len(tokens)])
    for token, kind, score in tokens:
        token = token.encode()
        out += bytes([kind, len(token)]) + token + bytes([score + 128])
    out += bytes([prefix, len(parts)])
    for trusted, part in parts:
        out += bytes([trusted, len(part)]) + part
    return out + text


def byte_level(merges, added, pre, text, parts=()):
    out = bytes([2, len(merges)])
    for left, right in merges:
        out += bytes([left & 255, left >> 8, right & 255, right >> 8])
    out += bytes([len(added)])
    for token, kind in added:
        out += bytes([len(token)]) + token + bytes([kind])
    out += bytes([pre, len(parts)])
    for trusted, part in parts:
        out += bytes([trusted, len(part)]) + part
    return out + text


def as_json(metadata, text):
    return b"\1" + json.dumps({"tokenizer.ggml." + key: value for key, value in metadata.items()}).encode() + b"\0\0" + text


WORDS = [("a", 1, -5), ("b", 1, -6), ("ab", 1, -1), (SPACE + "a", 1, -2), ("<s>", 3, 0), ("  ", 4, 0), ("bb", 5, 0), ("abb", 1, -9)]
TEXT = "It's 12345 o'clock,\r\n\n  caf\u00e9 e\u0301 \u6b6a \U0001f980\t!".encode()
BPE = {"model": "gpt2", "pre": "llama-bpe", "tokens": ["a", "b", "ab", "<|end|>"], "token_type": [1, 1, 1, 3], "merges": ["a b"],
       "bos_token_id": 3, "eos_token_id": 3, "add_bos_token": True}
SPM = {"model": "llama", "tokens": ["<unk>", "<0x41>", "a", SPACE], "token_type": [2, 6, 1, 1], "scores": [0, 0, -1.5, -2],
       "unknown_token_id": 0, "add_space_prefix": True}

SEEDS = {
    "empty": b"",
    "spm": sentencepiece(WORDS, b"abb a  bb\xff\xe2\x96\x81x"),
    "spm_prefix": sentencepiece(WORDS, TEXT, 1, [(1, b"<s>"), (0, b"<s> a")]),
    "spm_long": sentencepiece(WORDS, b"ab" * 100),
    "bpe_long": byte_level([(97, 98), (256, 256), (257, 257)], [], 0, b"ab" * 100),
    "json_bpe": as_json(BPE, b"ab<|end|>"),
    "json_spm": as_json(SPM, b"a A"),
    "json_short": as_json(dict(SPM, scores=[1]), b""),
    "json_merge": as_json(dict(BPE, merges=["a c"]), b""),
    "json_id": as_json(dict(BPE, bos_token_id=99), b""),
    "json_byte": as_json(dict(SPM, tokens=["<unk>", "<0x-1>", "a", "b"]), b""),
}


def files(model, text, **rest):
    return b"\1" + json.dumps({"hf": {"tokenizer_json": {"model": model, **rest}}}).encode() + b"\0\0" + text


def step(kind, **rest):
    return {"type": kind, **rest}


HF_BPE = step("BPE", vocab={"a": 0, "b": 1, "ab": 2, "<unk>": 3, "<0x0A>": 4, SPACE: 5}, merges=[["a", "b"]], unk_token="<unk>", byte_fallback=True)
HF_WORDS = step("WordPiece", vocab={"[UNK]": 0, "a": 1, "##b": 2, "[CLS]": 3}, unk_token="[UNK]", continuing_subword_prefix="##",
                max_input_chars_per_word=9)
HF_UNIGRAM = step("Unigram", vocab=[["<unk>", 0], ["a", -1], [SPACE, -2], ["ab", -1.5]], unk_id=0)
SEEDS.update({
    "hf_bpe": files(HF_BPE, TEXT, normalizer=step("Replace", pattern={"String": " "}, content=SPACE), decoder=step("ByteFallback"),
                    added_tokens=[{"id": 6, "content": "<s>", "special": True, "lstrip": True}, {"id": 7, "content": "caf", "single_word": True}]),
    "hf_split": files(HF_BPE, TEXT, normalizer=step("NFKD"), pre_tokenizer=step("Sequence", pretokenizers=[
        step("Split", pattern={"Regex": r"(?i:'s|'t)|[\\p{L}&&[^a-c]]+|\\s+$|\\h"}, behavior="MergedWithNext", invert=False), step("ByteLevel")]),
        decoder=step("ByteLevel")),
    "hf_words": files(HF_WORDS, TEXT, normalizer=step("BertNormalizer", lowercase=True), pre_tokenizer=step("BertPreTokenizer"),
                      decoder=step("WordPiece"), post_processor=step("BertProcessing", cls=["[CLS]", 3], sep=["a", 1])),
    "hf_unigram": files(HF_UNIGRAM, TEXT, pre_tokenizer=step("Metaspace", replacement=SPACE, prepend_scheme="first"), decoder=step("Metaspace",
                        replacement=SPACE)),
    "hf_level": files(step("WordLevel", vocab={"a": 0, "<unk>": 1}, unk_token="<unk>"), TEXT, pre_tokenizer=step("UnicodeScripts"),
                      decoder=step("CTC"), normalizer=step("Nmt")),
    "hf_spm": b"\1" + json.dumps({"hf": {"sentencepiece_base64": "CgwKBTx1bms+FQAAAAAYAgoICgFhFQAAgL8K"}}).encode() + b"\0\0a",
    "hf_txt": b"\1" + json.dumps({"hf": {"vocab_txt": "[UNK]\n[CLS]\n[SEP]\na\n##b\n"}}).encode() + b"\0\0abc",
    "hf_vocab": b"\1" + json.dumps({"hf": {"vocab_json": {"a": 0, "b": 1, "ab": 2}, "merges_txt": "#version: 0.2\na b\n"}}).encode() + b"\0\0ab",
})
for pre in range(85):
    SEEDS[f"bpe_{pre}"] = byte_level([(97, 98), (99, 256)], [(b"<e>", 3), (b"[u]", 4)], pre, TEXT + b"\xff\xf0\x9f", [(1, b"<e>[u"), (0, b"]<e>")])

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for name, data in SEEDS.items():
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
