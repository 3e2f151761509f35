#!/usr/bin/env python3
"""Tokenizers of folders as GGUF: the keys that are written, and what is left out with a note.

    tokenizer_keys.py PROGRAM
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
except ImportError:
    print("skipped: numpy or gguf is not installed (test.sh installs them)")
    sys.exit(77)

PROGRAM = sys.argv[1]
WIDTH = 16
TEXTS = ["Hello  world", " low lower", "2024", "caf\u00e9 \u4f60"]
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def bytes_to_unicode():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + n) for n, b in enumerate(rest)}}


def byte_level(patterns, ignore_merges=False, nfc=False, post=None, merges=(("l", "o"), ("lo", "w"), ("\u0120", "low"))):
    vocabulary = {letter: n for n, letter in enumerate(bytes_to_unicode().values())}
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    size = len(vocabulary)
    added = [{"id": size, "content": "<bos>", "special": True}, {"id": size + 1, "content": "<tool>", "special": False}, {"id": size + 3, "content": "<eos>", "special": True}]
    for token in added:
        token.update(single_word=False, lstrip=False, rstrip=False, normalized=False)
    steps = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in patterns]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": not patterns}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "NFC"} if nfc else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, level]}, "post_processor": post or level, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                      "byte_fallback": False, "ignore_merges": ignore_merges, "vocab": vocabulary, "merges": [list(m) for m in merges]}}


def template(bos, size):
    return {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {bos: {"id": bos, "ids": [size], "tokens": [bos]}}}


def sentencepiece_like():
    names = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", "l", "o", "w", "lo", "low", "\u2581low"]
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": n, "content": names[n], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for n in range(3)],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
            "pre_tokenizer": None, "post_processor": template("<s>", 1),
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                         {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True,
                      "byte_fallback": True, "vocab": {name: n for n, name in enumerate(names)}, "merges": ["l o", "lo w", "\u2581 low"]}}


def piece(text, score, kind):
    body = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", score) + (b"\x18" + bytes([kind]) if kind != 1 else b"")
    return b"\x0a" + bytes([len(body)]) + body


def unigram_like(names, special, charsmap=None):
    """As transformers makes it of XLM-RoBERTa's pieces."""
    steps = [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    around = {"single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": n, "content": names[n][0], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for n in special],
            "normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]},
            "post_processor": {"type": "TemplateProcessing", **around, "pair": around["single"] + [{"Sequence": {"id": "B", "type_id": 1}}],
                               "special_tokens": {name: {"id": name, "ids": [n], "tokens": [name]} for n, name in ((0, "<s>"), (2, "</s>"))}},
            "decoder": space, "model": {"type": "Unigram", "unk_id": 3, "vocab": [list(entry) for entry in names], "byte_fallback": False}}


def wordpiece_like(words, lower=True):
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": n, "content": words[n], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for n in range(5)],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": lower},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": {word: n for n, word in enumerate(words)}}}


def sentencepiece_model(model_type, drop_spaces=False, whole=True):
    pieces = [(b"<unk>", 0, 2), (b"<s>", 0, 3), (b"</s>", 0, 3), *((f"<0x{b:02X}>".encode(), 0, 6) for b in range(256)), ("\u2581".encode(), -5, 1), (b"l", -6, 1), (b"o", -7, 1),
              (b"lo", -1, 1), *([("\u2581\u2581".encode(), 0, 4)] if whole else [])]
    trainer = b"\x18" + bytes([model_type]) + b"\x98\x02\x01"  # model_type, byte_fallback
    normalizer = b"\x18\x00" + (b"" if drop_spaces else b"\x20\x00")  # add_dummy_prefix and remove_extra_whitespaces: no
    return b"".join(piece(*p) for p in pieces) + b"\x12" + bytes([len(trainer)]) + trainer + b"\x1a" + bytes([len(normalizer)]) + normalizer


def write_model(folder, rows, files):
    rng, header, data = np.random.default_rng(1), {}, b""
    shapes = {"model.embed_tokens.weight": [rows, WIDTH], "model.norm.weight": [WIDTH]}
    for name, shape in (("self_attn.q_proj", [WIDTH, WIDTH]), ("self_attn.k_proj", [WIDTH, WIDTH]), ("self_attn.v_proj", [WIDTH, WIDTH]), ("self_attn.o_proj", [WIDTH, WIDTH]),
                        ("mlp.gate_proj", [WIDTH, WIDTH]), ("mlp.up_proj", [WIDTH, WIDTH]), ("mlp.down_proj", [WIDTH, WIDTH]), ("input_layernorm", [WIDTH]),
                        ("post_attention_layernorm", [WIDTH])):
        shapes[f"model.layers.0.{name}.weight"] = shape
    for name, shape in shapes.items():
        values = rng.standard_normal(shape).astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + data)
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "intermediate_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": rows,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 64, "hidden_act": "silu", "tie_word_embeddings": True}
    for name, value in {"config.json": config, **files}.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(value if isinstance(value, bytes) else json.dumps(value).encode())


def mekik(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"mekik {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def tokens_of(model):
    return [json.loads(mekik("tokenize", model, "--text", text, "--add-special", "--json"))["tokens"] for text in TEXTS]


def convert(scratch, name, rows, files):
    folder, path = os.path.join(scratch, name), os.path.join(scratch, name + ".gguf")
    write_model(folder, rows, files)
    report = json.loads(mekik("convert", folder, "--to", "gguf", "-o", path, "--json"))
    keys = {key[len("tokenizer.ggml."):]: field.contents() for key, field in gguf.GGUFReader(path).fields.items() if key.startswith("tokenizer.ggml.")}
    if keys["model"] != "no_vocab":
        assert tokens_of(folder) == tokens_of(path), f"{name}: the file tokenizes differently"
    return keys, report["notes"]


NAMES = {"bos_token": "<bos>", "eos_token": {"content": "<eos>"}}


def qwen_like(scratch):
    keys, notes = convert(scratch, "qwen", 300, {"tokenizer.json": byte_level([QWEN2], nfc=True), "tokenizer_config.json": {**NAMES, "add_bos_token": False},
                                                 "generation_config.json": {"eos_token_id": [262, 260]}})
    assert not notes, notes
    assert (keys["model"], keys["pre"]) == ("gpt2", "qwen2")
    assert keys["merges"] == ["l o", "lo w", "\u0120 low"]
    assert len(keys["tokens"]) == len(keys["token_type"]) == 300
    assert keys["tokens"][256:263] == ["lo", "low", "\u0120low", "<bos>", "<tool>", "[PAD261]", "<eos>"], keys["tokens"][256:263]
    assert keys["token_type"][256:264] == [NORMAL, NORMAL, NORMAL, CONTROL, USER, UNUSED, CONTROL, UNUSED]
    assert (keys["bos_token_id"], keys["eos_token_id"], keys["eot_token_id"]) == (259, 262, 260)
    assert (keys["add_bos_token"], keys["add_eos_token"]) == (False, False)


def with_bos(scratch):
    keys, notes = convert(scratch, "bos", 263, {"tokenizer.json": byte_level([LLAMA3], ignore_merges=True, post=template("<bos>", 259)), "tokenizer_config.json": NAMES,
                                                "chat_template.jinja": b"{{ bos_token }}hi"})
    assert not notes, notes
    assert keys["pre"] == "llama-bpe"
    assert keys["add_bos_token"] is True


def plain_pattern(scratch):
    keys, _ = convert(scratch, "gpt2", 263, {"tokenizer.json": byte_level([]), "tokenizer_config.json": NAMES})
    assert keys["pre"] == "gpt-2"
    keys, _ = convert(scratch, "deepseek", 263, {"tokenizer_config.json": NAMES, "tokenizer.json": byte_level([
        r"\p{N}{1,3}", DEEPSEEK,
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""])})
    assert keys["pre"] == "deepseek-v3"


def merges_as_scores(scratch):
    keys, notes = convert(scratch, "spm", 266, {"tokenizer.json": sentencepiece_like(), "tokenizer_config.json": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}})
    assert not notes, notes
    assert keys["model"] == "llama" and keys["add_space_prefix"] is True and keys["add_bos_token"] is True
    assert keys["token_type"][:4] == [UNKNOWN, CONTROL, CONTROL, BYTE], keys["token_type"][:4]
    scores = dict(zip(keys["tokens"], keys["scores"]))
    assert scores["lo"] == 0 and scores["low"] == -1 and scores["\u2581low"] == -2 and scores["l"] < -2
    assert keys["unknown_token_id"] == 0


def pieces(scratch):
    keys, notes = convert(scratch, "pieces", 270, {"tokenizer.model": sentencepiece_model(2), "tokenizer_config.json": {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True}})
    assert not notes, notes
    assert keys["model"] == "llama" and keys["add_space_prefix"] is False
    assert keys["tokens"][259:264] == ["\u2581", "l", "o", "lo", "  "] and keys["scores"][262] == -1
    assert keys["token_type"][259:266] == [NORMAL, NORMAL, NORMAL, NORMAL, USER, UNUSED, UNUSED]


def back_again(scratch, name):
    """The file's tokenizer as a folder's."""
    path, folder = os.path.join(scratch, name + ".gguf"), os.path.join(scratch, name + "-back")
    report = json.loads(mekik("convert", path, "--to", "safetensors", "-o", folder, "--json"))
    assert not any("tokenizer" in note for note in report["notes"]), report["notes"]
    assert tokens_of(folder) == tokens_of(path), f"{name}: the folder that comes back tokenizes differently"


def unigram(scratch):
    names = [("<s>", 0), ("<pad>", 0), ("</s>", 0), ("<unk>", 0), ("\u2581", -3), ("\u2581Hello", -5), ("\u2581world", -6), ("l", -4), ("o", -4.5), ("w", -4.25), ("\u2581lo", -4.75),
             ("er", -5.5), ("2", -6), ("0", -6), ("4", -6), ("<mask>", 0)]
    keys, notes = convert(scratch, "xlmr", 18, {"tokenizer.json": unigram_like(names, [0, 1, 2, 3, 15]), "tokenizer_config.json": {
        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}})
    assert keys["model"] == "t5" and keys["pre"] == "default" and keys["add_space_prefix"] is True and keys["remove_extra_whitespaces"] is True, keys
    assert (keys["add_bos_token"], keys["add_eos_token"]) == (True, True)
    assert keys["token_type"][:5] == [CONTROL, CONTROL, CONTROL, UNKNOWN, NORMAL] and keys["token_type"][15:] == [CONTROL, UNUSED, UNUSED], keys["token_type"]
    assert np.allclose(keys["scores"][4:8], [-3, -5, -6, -4]) and (keys["bos_token_id"], keys["eos_token_id"], keys["unknown_token_id"]) == (0, 2, 3)
    back_again(scratch, "xlmr")
    keys, notes = convert(scratch, "t5", 266, {"tokenizer.model": sentencepiece_model(1, drop_spaces=True, whole=False), "tokenizer_config.json": {
        "tokenizer_class": "T5Tokenizer", "eos_token": "</s>", "unk_token": "<unk>"}})
    assert keys["model"] == "t5" and keys["remove_extra_whitespaces"] is True and keys["add_space_prefix"] is False, (keys, notes)
    assert (keys["add_bos_token"], keys["add_eos_token"]) == (False, True)
    back_again(scratch, "t5")


def wordpieces(scratch):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world", "low", "##er", "2024", "cafe", "\u4f60", "[unused1]"]
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
    for name, lower in (("bert", True), ("cased", False)):
        keys, notes = convert(scratch, name, 14, {"tokenizer.json": wordpiece_like(words, lower), "tokenizer_config.json": names})
        assert not notes, notes
        assert keys["model"] == "bert" and keys["tokens"] == [*words[:5], "\u2581hello", "\u2581world", "\u2581low", "er", "\u25812024", "\u2581cafe", "\u2581\u4f60",
                                                            "\u2581[unused1]", "[PAD13]"], keys["tokens"]
        assert keys["token_type"] == [CONTROL] * 5 + [NORMAL] * 8 + [UNUSED]
        assert (keys["unknown_token_id"], keys["cls_token_id"], keys["seperator_token_id"], keys["padding_token_id"]) == (1, 2, 3, 0)
        assert keys["normalizer.lowercase"] is lower
        back_again(scratch, name)
    keys, notes = convert(scratch, "txt", 13, {"vocab.txt": "\n".join(words).encode() + b"\n", "tokenizer_config.json": {"tokenizer_class": "BertTokenizer"}})
    assert keys["model"] == "bert" and not notes, (keys, notes)
    # What BERT's own words cannot say.
    odd = wordpiece_like(words)
    odd["pre_tokenizer"] = {"type": "Whitespace"}
    keys, notes = convert(scratch, "oddwords", 13, {"tokenizer.json": odd, "tokenizer_config.json": names})
    assert keys == {"model": "no_vocab"} and "does not split as BERT's" in notes[0], (keys, notes)


def left_out(scratch):
    odd = byte_level([r"\p{Lu}+|.+"])
    keys, notes = convert(scratch, "odd", 263, {"tokenizer.json": odd, "tokenizer_config.json": NAMES})
    assert keys == {"model": "no_vocab"} and "pattern" in notes[0] and "left out" in notes[0], (keys, notes)
    keys, notes = convert(scratch, "spaces", 270, {"tokenizer.model": sentencepiece_model(2, drop_spaces=True)})
    assert keys == {"model": "no_vocab"} and "drops spaces" in notes[0], (keys, notes)
    keys, notes = convert(scratch, "none", 263, {})
    assert keys == {"model": "no_vocab"} and notes == ["the model has no tokenizer, so the file has none"], notes


def main():
    failed = 0
    for check in (qwen_like, with_bos, plain_pattern, merges_as_scores, pieces, unigram, wordpieces, left_out):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                check(scratch)
                print(f"ok      {check.__name__}")
            except (AssertionError, KeyError) as error:
                failed += 1
                print(f"FAILED  {check.__name__}: {str(error)[:800]}")
    return 1 if failed else 0


sys.exit(main())
