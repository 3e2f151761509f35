"""Small tokenizers of every kind and combination, as the objects of their tokenizer.json."""
import base64
import io
import json

import sentencepiece
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from hf_texts import CORPUS

GPT2_SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
PATTERNS = [GPT2_SPLIT, LLAMA3, GPT4O, KIMI, CLIP, BLOOM, r"\s+$", r"^\s+", r"^", r"$", r"\w+", r"\W", r"\b", r"\d", r"\D+", r"\S+", r"[\S\n]",
            r"[^\W\d]+", r"[[:punct:]]", r"[[:alpha:]]+", r"[[:^alnum:]]", r"[[:upper:]]", r"[[:space:]]+", r"\h+", r"(?m:.)", r".", r"(?i)hello",
            r"a*", r"x?", r" {2,}", r"a{,2}", r"[a-z&&[^aeiou]]+", r"[^a-z&&[^aeiou]]", r"\p{Han}", r"\p{^L}", r"\P{L}+", r"\p{Lu}", r"[\p{Ll}\p{M}]+",
            r"(?<=a)b", r"(?<!\p{L})\p{L}", r"\R", r"[\x{4e00}-\x{9fff}]+", r"\u3042", r"\p{Hiragana}|\p{Katakana}", r"\A +| +\z", r"\p{Punct}",
            r"[a[bc]d]", r"\p{Alpha}", r"(?<w>l)\k<w>", r"\x20", r"[\]\[^-]", r"\p{Latin}+", r"[[:word:]]+", r"\O", r"\s", r"[\s&&[^\n]]+", r"\Z", r"[[:punct:]&&[^<>]]+", r"\p{Word}", r"\W+", r"\B", r"\P{Lu}+$", r"[^\s\p{L}\p{N}]++", r"\d{1,3}(?=(?:\d{3})*\b)"]


def train(model, trainer, pre=None, normalizer=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(CORPUS * 2, trainer)
    return json.loads(tokenizer.to_str())["model"]


def byte_tokens(model, wanted=range(256)):
    free = max(model["vocab"].values()) + 1
    for byte in wanted:
        if model["vocab"].setdefault(f"<0x{byte:02X}>", free) == free:
            free += 1
    return {**model, "byte_fallback": True}


def make_models():
    bpe = lambda size, pre, **options: train(
        models.BPE(**{k: v for k, v in options.items() if k in ("unk_token",)}),
        trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>"], show_progress=False, **{k: v for k, v in options.items() if k not in ("unk_token",)}),
        pre)
    made = {}
    made["bpe"] = bpe(420, pre_tokenizers.WhitespaceSplit(), unk_token="<unk>", limit_alphabet=110)
    made["bpe_fused"] = {**made["bpe"], "fuse_unk": True}
    made["bpe_silent"] = {**made["bpe"], "unk_token": None}
    made["bpe_affixes"] = {**bpe(520, pre_tokenizers.WhitespaceSplit(), unk_token="<unk>", limit_alphabet=90, continuing_subword_prefix="##",
                                 end_of_word_suffix="</w>"), "fuse_unk": True}
    made["bpe_suffix"] = bpe(420, pre_tokenizers.WhitespaceSplit(), unk_token="<unk>", limit_alphabet=90, end_of_word_suffix="</w>")
    made["bpe_bytes"] = bpe(480, pre_tokenizers.ByteLevel(add_prefix_space=False), initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    whole = {"Ġinternational": 9000, "Hello": 9001, "Ġtokenization": 9002, "ĠNew": 9003}
    made["bpe_ignore_merges"] = {**made["bpe_bytes"], "ignore_merges": True, "vocab": {**made["bpe_bytes"]["vocab"], **{
        k: len(made["bpe_bytes"]["vocab"]) + i for i, k in enumerate(whole) if k not in made["bpe_bytes"]["vocab"]}}}
    made["bpe_legacy_merges"] = {**made["bpe_bytes"], "merges": [" ".join(m) for m in made["bpe_bytes"]["merges"]]}
    meta = bpe(420, pre_tokenizers.Metaspace(), unk_token="<unk>", limit_alphabet=100)
    made["bpe_fallback"] = {**byte_tokens(json.loads(json.dumps(meta))), "fuse_unk": True}
    made["bpe_some_bytes"] = {**byte_tokens(json.loads(json.dumps(meta)), [*range(64), 0xC3, 0xA9, 0xE2, *range(0x80, 0xA0)]), "fuse_unk": False}
    unigram = lambda size, **options: train(models.Unigram(), trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", special_tokens=["<unk>"],
                                            show_progress=False, **options), pre_tokenizers.Metaspace())
    made["unigram"] = unigram(380)
    fallback = json.loads(json.dumps(made["unigram"]))
    fallback["vocab"] += [[f"<0x{b:02X}>", 0.0] for b in range(256)]
    made["unigram_bytes"] = {**fallback, "byte_fallback": True}
    made["wordpiece"] = train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=400, limit_alphabet=100, show_progress=False,
                              special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]), pre_tokenizers.BertPreTokenizer(),
                              normalizers.BertNormalizer())
    made["wordpiece_short"] = {**made["wordpiece"], "max_input_chars_per_word": 5}
    made["wordlevel"] = train(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=90, special_tokens=["<unk>"],
                              show_progress=False), pre_tokenizers.Whitespace())
    return made


def charsmap(full):
    """A precompiled table of SentencePiece: NFKC for Unicode's sake (240 KB), or a few rules."""
    rules = "".join("\t".join([" ".join(f"{ord(c):X}" for c in a), " ".join(f"{ord(c):X}" for c in b)]) + "\n" for a, b in [
        ("ﬁ", "fi"), ("ﬃ", "ffi"), ("½", "1/2"), ("\u212b", "\u00e5"), ("e\u0301", "é"), ("a\u0300", "à"), ("\u3000", " "), ("\u00a0", " "), ("\u200b", ""), ("１", "1"), ("ａ", "a"),
        ("㎒", "MHz"), ("ｶﾞ", "ガ"), ("ｶ", "カ"), ("\u00ad", ""), ("…", "..."), ("\t", " "), ("\u1112\u1161\u11ab", "한"), ("👍🏽", "ok"), ("²", "2")])
    with open("/tmp/mekik-rules.tsv", "w", encoding="utf-8") as file:
        file.write(rules)
    out = io.BytesIO()
    options = dict(normalization_rule_name="nmt_nfkc") if full else dict(normalization_rule_tsv="/tmp/mekik-rules.tsv")
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS * 3), model_writer=out, vocab_size=300, model_type="unigram",
                                             minloglevel=2, hard_vocab_limit=False, **options)
    return base64.b64encode(field(field(out.getvalue(), 3), 2)).decode()


def field(message, number):
    """The bytes of a length-delimited field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        key = varint()
        if key & 7 == 2:
            size = varint()
            if key >> 3 == number:
                return message[at:at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            at += 8 if key & 7 == 1 else 4
    raise ValueError(number)


N = lambda kind, **rest: {"type": kind, **rest}
seq = lambda key, *steps: {"type": "Sequence", key: list(steps)}
BERT_N = dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
regex = lambda text: {"Regex": text}
string = lambda text: {"String": text}
replace = lambda pattern, content: N("Replace", pattern=pattern, content=content)
split = lambda pattern, behavior="Isolated", invert=False: N("Split", pattern=pattern, behavior=behavior, invert=invert)
metaspace = lambda scheme, do_split=True, sign="▁": N("Metaspace", replacement=sign, prepend_scheme=scheme, split=do_split)
byte_level = lambda prefix=False, use_regex=True: N("ByteLevel", add_prefix_space=prefix, trim_offsets=True, use_regex=use_regex)
LLAMA2_N = seq("normalizers", N("Prepend", prepend="▁"), replace(string(" "), "▁"))
LLAMA2_D = seq("decoders", replace(string("▁"), " "), N("ByteFallback"), N("Fuse"), N("Strip", content=" ", start=1, stop=0))
BERT_P = N("TemplateProcessing",
           single=[{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
           pair=[{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
           special_tokens={t: {"id": t, "ids": [i], "tokens": [t]} for t, i in (("[CLS]", 2), ("[SEP]", 3))})


def template(specials, single, pair):
    piece = lambda p: {"Sequence": {"id": p[1], "type_id": int(p[2:].lstrip(":") or 0)}} if p[0] == "$" else {"SpecialToken": {"id": p.split(":")[0], "type_id": int((p.split(":") + ["0"])[1])}}
    return N("TemplateProcessing", single=[piece(p) for p in single.split()], pair=[piece(p) for p in pair.split()],
             special_tokens={t: {"id": t, "ids": ids, "tokens": [t] * len(ids)} for t, ids in specials.items()})


def added(*specs):
    """("<s>", "special lstrip") ..: the flags that are set; normalized where not special, unless said otherwise."""
    out = []
    for i, (content, flags) in enumerate(specs):
        flags = flags.split()
        out.append({"id": i, "content": content, "single_word": "word" in flags, "lstrip": "lstrip" in flags, "rstrip": "rstrip" in flags,
                    "normalized": "normalized" in flags or ("special" not in flags and "raw" not in flags), "special": "special" in flags})
    return out


USUAL = added(("<s>", "special"), ("</s>", "special"), ("<mask>", "special lstrip"), ("NewToken", "word"), ("<|end|>", "special rstrip"))
ODD = added(("<s>", "special normalized"), ("Hello", "raw"), ("hello ", "normalized"), ("<mask>", "special lstrip rstrip"), ("<x>", "lstrip rstrip"),
            ("NewToken", "word lstrip"), ("<|end|>", "special"), ("<|end|", "raw"), ("end", "word"), (" a", "raw"), ("É", ""), ("aaaa", ""), ("aaa", "raw"))


def catalog(made, small_charsmap):
    """(name, model's name, the rest of tokenizer.json)."""
    bert = added(*((t, "special") for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")), ("[MASK]", "special lstrip"))
    rows = [
        ("bert", "wordpiece", dict(normalizer=N("BertNormalizer", **BERT_N), pre_tokenizer=N("BertPreTokenizer"), post_processor=BERT_P,
                                   decoder=N("WordPiece", prefix="##", cleanup=True), added_tokens=bert)),
        ("bert cased", "wordpiece_short", dict(normalizer=N("BertNormalizer", **{**BERT_N, "lowercase": False, "strip_accents": True}),
                                               pre_tokenizer=N("BertPreTokenizer"), decoder=N("WordPiece", prefix="##", cleanup=False),
                                               post_processor=N("BertProcessing", sep=["[SEP]", 3], cls=["[CLS]", 2]), added_tokens=bert)),
        ("gpt2", "bpe_bytes", dict(pre_tokenizer=byte_level(), decoder=byte_level(), post_processor=byte_level(), added_tokens=USUAL)),
        ("roberta", "bpe_legacy_merges", dict(pre_tokenizer=byte_level(True), decoder=byte_level(True), added_tokens=USUAL,
                                              post_processor={**N("RobertaProcessing", sep=["</s>", 2], cls=["<s>", 0], trim_offsets=True, add_prefix_space=True)})),
        ("llama3", "bpe_ignore_merges", dict(pre_tokenizer=seq("pretokenizers", split(regex(LLAMA3)), byte_level(False, False)), decoder=byte_level(),
                                             added_tokens=ODD, post_processor=seq("processors", byte_level(), template({"<s>": [0]}, "<s> $A", "<s> $A <s>:1 $B1")))),
        ("qwen2", "bpe_bytes", dict(normalizer=N("NFC"), pre_tokenizer=seq("pretokenizers", split(regex(LLAMA3.replace("{1,3}", ""))), byte_level(False, False)),
                                    decoder=byte_level(), added_tokens=USUAL)),
        ("gpt-4o", "bpe_bytes", dict(pre_tokenizer=seq("pretokenizers", split(regex(GPT4O)), byte_level(False, False)), decoder=byte_level(), added_tokens=ODD)),
        ("deepseek", "bpe_bytes", dict(pre_tokenizer=seq("pretokenizers", *(split(regex(p)) for p in DEEPSEEK), byte_level(False, False)), decoder=byte_level())),
        ("kimi", "bpe_bytes", dict(pre_tokenizer=seq("pretokenizers", split(regex(KIMI)), byte_level(False, False)), decoder=byte_level())),
        ("starcoder", "bpe_bytes", dict(pre_tokenizer=seq("pretokenizers", N("Digits", individual_digits=True), byte_level()), decoder=byte_level(), added_tokens=USUAL)),
        ("falcon", "bpe_bytes", dict(pre_tokenizer=seq("pretokenizers", N("Punctuation", behavior="Contiguous"), byte_level(), N("Digits", individual_digits=False),
                                                       split(regex("[0-9][0-9][0-9]"))), decoder=byte_level())),
        ("byte normalizer", "bpe_bytes", dict(normalizer=seq("normalizers", N("Lowercase"), N("ByteLevel")), decoder=byte_level(), added_tokens=ODD)),
        ("bloom", "bpe_bytes", dict(pre_tokenizer=seq("pretokenizers", split(regex(BLOOM)), byte_level(False, False)), decoder=byte_level())),
        ("llama2", "bpe_fallback", dict(normalizer=LLAMA2_N, decoder=LLAMA2_D, added_tokens=USUAL,
                                        post_processor=template({"<s>": [0], "</s>": [1]}, "<s> $A </s>", "<s> $A </s> <s>:1 $B1 </s>:1"))),
        ("llama2 new", "bpe_fallback", dict(pre_tokenizer=metaspace("first", False), decoder=LLAMA2_D, added_tokens=USUAL)),
        ("gemma", "bpe_fallback", dict(normalizer=replace(string(" "), "▁"), pre_tokenizer=split(string(" "), "MergedWithPrevious"), added_tokens=ODD,
                                       decoder=seq("decoders", replace(string("▁"), " "), N("ByteFallback"), N("Fuse")))),
        ("some bytes", "bpe_some_bytes", dict(pre_tokenizer=metaspace("always"), decoder=seq("decoders", N("ByteFallback"), metaspace("always")), added_tokens=ODD)),
        ("xlm-r", "unigram", dict(normalizer=seq("normalizers", N("Precompiled", precompiled_charsmap=small_charsmap), replace(regex(" {2,}"), " ")),
                                  pre_tokenizer=metaspace("always"), decoder=metaspace("always"), added_tokens=USUAL,
                                  post_processor=template({"<s>": [0], "</s>": [1]}, "<s> $A </s>", "<s> $A </s> </s> $B </s>"))),
        ("t5", "unigram_bytes", dict(normalizer=seq("normalizers", N("Precompiled", precompiled_charsmap=small_charsmap), N("Strip", strip_left=False, strip_right=True)),
                                     pre_tokenizer=seq("pretokenizers", N("WhitespaceSplit"), metaspace("first")), decoder=metaspace("first"), added_tokens=ODD,
                                     post_processor=template({"</s>": [1, 0]}, "$A </s>", "$A:0 </s> $B1 </s>:1"))),
        ("albert", "unigram", dict(normalizer=seq("normalizers", replace(string("``"), '"'), N("NFKD"), N("StripAccents"), N("Lowercase")),
                                   pre_tokenizer=metaspace("never"), decoder=metaspace("never"), added_tokens=ODD)),
        ("clip", "bpe_affixes", dict(normalizer=seq("normalizers", N("NFC"), replace(regex(r"\s+"), " "), N("Lowercase")),
                                     pre_tokenizer=seq("pretokenizers", split(regex(CLIP), "Removed", True), byte_level()), decoder=N("BPEDecoder", suffix="</w>"))),
        ("openai", "bpe_suffix", dict(normalizer=N("BertNormalizer", **BERT_N), pre_tokenizer=N("BertPreTokenizer"), decoder=N("BPEDecoder", suffix="</w>"), added_tokens=USUAL)),
        ("words", "wordlevel", dict(normalizer=N("Lowercase"), pre_tokenizer=N("Whitespace"), added_tokens=USUAL)),
        ("ctc", "wordlevel", dict(pre_tokenizer=N("CharDelimiterSplit", delimiter="|"), decoder=N("CTC", pad_token="<unk>", word_delimiter_token="|", cleanup=True))),
        ("nmt", "bpe_fused", dict(normalizer=seq("normalizers", N("Nmt"), N("NFKC"), N("Strip", strip_left=True, strip_right=True)), pre_tokenizer=N("UnicodeScripts"), added_tokens=USUAL)),
        ("silent", "bpe_silent", dict(normalizer=N("NFD"), pre_tokenizer=N("FixedLength", length=7), decoder=N("Fuse"), added_tokens=ODD)),
        ("whole", "bpe", dict(normalizer=seq("normalizers"), added_tokens=USUAL)),
    ]
    for i, behavior in enumerate(("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")):
        rows.append((f"{behavior} pattern", "bpe", dict(pre_tokenizer=split(regex(r"\s+|l*|(?<=\d)\d$"), behavior), added_tokens=ODD)))
        rows.append((f"{behavior} text inverted", "bpe_fused", dict(pre_tokenizer=split(string(" "), behavior, True))))
        rows.append((f"{behavior} punctuation", "wordlevel", dict(pre_tokenizer=N("Punctuation", behavior=behavior))))
    return [(name, model, {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                           "post_processor": None, "decoder": None, **rest}) for name, model, rest in rows]


def random_pipeline(rng, made, charsmaps):
    """Any of the models under any steps. The library refuses some; a hard fault of its own (a panic) is not our business."""
    def normalizer(depth=0):
        return rng.choice([lambda: N(rng.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"])),
                           lambda: N("Strip", strip_left=rng.random() < .5, strip_right=rng.random() < .5),
                           lambda: replace(string(rng.choice([" ", "a", "lo", "▁"])), rng.choice(["", "▁", " ", "xy"])),
                           lambda: replace(regex(rng.choice(PATTERNS)), rng.choice(["", "▁", " ", "é"])),
                           lambda: N("Prepend", prepend=rng.choice(["▁", " ", "ab"])),
                           lambda: N("BertNormalizer", clean_text=rng.random() < .7, handle_chinese_chars=rng.random() < .7,
                                     strip_accents=rng.choice([None, True, False]), lowercase=rng.random() < .5),
                           lambda: N("Precompiled", precompiled_charsmap=rng.choice(charsmaps)),
                           lambda: normalizer() if depth else seq("normalizers", *(normalizer(1) for _ in range(rng.randrange(5))))])()

    def pre_tokenizer(depth=0):
        behavior = rng.choice(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
        return rng.choice([lambda: byte_level(rng.random() < .5, rng.random() < .7), lambda: split(regex(rng.choice(PATTERNS)), behavior, rng.random() < .3),
                           lambda: split(regex(rng.choice(PATTERNS)), behavior, rng.random() < .3),
                           lambda: split(string(rng.choice([" ", "l", "aa", "é"])), behavior, rng.random() < .3),
                           lambda: metaspace(rng.choice(["first", "always", "never"]), rng.random() < .5, rng.choice("▁_é")),
                           lambda: N(rng.choice(["Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts"])),
                           lambda: N("Punctuation", behavior=behavior), lambda: N("Digits", individual_digits=rng.random() < .5),
                           lambda: N("CharDelimiterSplit", delimiter=rng.choice(" l.é")), lambda: N("FixedLength", length=rng.randrange(1, 9)),
                           lambda: pre_tokenizer() if depth else seq("pretokenizers", *(pre_tokenizer(1) for _ in range(rng.randrange(1, 5))))])()

    def decoder(depth=0):
        return rng.choice([lambda: byte_level(), lambda: metaspace(rng.choice(["first", "always", "never"])), lambda: N("ByteFallback"), lambda: N("Fuse"),
                           lambda: N("Strip", content=rng.choice(" ▁l"), start=rng.randrange(3), stop=0), lambda: replace(string(rng.choice("▁lĠ")), rng.choice([" ", ""])),
                           lambda: N("WordPiece", prefix="##", cleanup=rng.random() < .5), lambda: N("BPEDecoder", suffix="</w>"),
                           lambda: N("CTC", pad_token="<unk>", word_delimiter_token="l", cleanup=rng.random() < .5),
                           lambda: decoder() if depth else seq("decoders", *(decoder(1) for _ in range(rng.randrange(5))))])()

    name = rng.choice(sorted(made))
    flags = lambda: " ".join(f for f in ("special", "word", "lstrip", "rstrip", "normalized", "raw") if rng.random() < .3)
    from hf_texts import SPECIALS, WORDS
    contents = rng.sample(SPECIALS + ["a", " a", "the", "é", "  ", "\n", "1", "hello ", "lo w"] + rng.sample(WORDS, 5), rng.randrange(9))
    pick = lambda make, chance: make() if rng.random() < chance else None
    return name, {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added(*((c, flags()) for c in dict.fromkeys(contents) if c)),
                  "normalizer": pick(normalizer, .7), "pre_tokenizer": pick(pre_tokenizer, .85), "decoder": pick(decoder, .8),
                  "post_processor": rng.choice([None, byte_level(), N("BertProcessing", sep=["b", 5], cls=["a", 4]),
                                                N("RobertaProcessing", sep=["b", 5], cls=["a", 4], trim_offsets=True, add_prefix_space=False),
                                                template({"x": [1, 2], "y": [3]}, "x:1 $A2 y", "$B1 x $A y:3 $A7"),
                                                seq("processors", byte_level(), template({"x": [1]}, "$A x", "$A x $B1"))])}
