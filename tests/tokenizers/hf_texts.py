"""Texts to train small tokenizers on, and texts that tokenizers get wrong."""
import random
import unicodedata

CORPUS = [
    "The quick brown fox jumps over the lazy dog. It isn't lazy, they're quick; we've seen 1234 of them in 2024!",
    "def main(argv):\n    for i in range(10):\n        print(f\"{i:>4} {i * i}\")\n    return 0\n",
    "Größere Straßen führen über Köln nach München. L'été dernier, où êtes-vous allés? Čeština je krásný jazyk.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Η γλώσσα είναι ελληνική. שלום עולם. مرحبا بالعالم",
    "我们在北京吃了很多饺子。日本語の文章を書きます。カタカナとひらがな。한국어 문장을 씁니다. ภาษาไทยไม่มีช่องว่าง",
    "नमस्ते दुनिया। தமிழ் மொழி. Việt Nam đất nước. İstanbul'da ığdır. 🦀🦙👩‍👩‍👧‍👦🇹🇷👍🏽 emoji ⚠️ ½ ² Ⅷ ﬁne ①",
    "<b>HTML</b> &amp; [link](http://example.org/a?b=c#d) {\"key\": [1, 2.5, -3e8, null, true]} $x_{i+1}^2$ a|b||c \\n",
    "hello world hello there hello again world again and again and again; unhappiness, tokenization, internationalization",
]

SPECIALS = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "<|end|>", "[CLS]", "[SEP]", "Hello", "NewToken", "<x>"]

HOSTILE = [
    "",
    " ",
    "Hello world",
    " Hello  world ",
    "  leading and trailing   ",
    "The isn't they're WE'VE I'll 'S 's ''s it\u2019s",
    "a\r\nb\n\nc\n \n  d\t\te\r",
    "   \n\n   x\n   ",
    "1234567890 3.14159 1,000,000 12a34 ½ ² Ⅷ ٣٤ 四",
    "café cafe\u0301 e\u0301\u0323 \u0323\u0301 q\u0323\u0307 \u1e9b\u0323 ﬁ ﬃ Å Å Ω Ω",
    "İstanbul I\u0307 ǅ ẞ ß ΑΣ Σ",
    "你好,世界!日本語カタカナひらがな한국어 各\u1112\u1161\u11ab",
    "ภาษาไทย नमस्ते क्षि தமிழ் שָׁלוֹם مُحَمَّد",
    "🦀🦙 👩‍👩‍👧‍👦 🇹🇷🇩🇪 👍🏽 ⚠️ 🏴\U000e0067\U000e0062\U000e007f ☝🏿️",
    "\u200b\u200c\u200d\ufeff\u2060\u00ad\u180e\u3000\u00a0\u2003\u2028\u2029\u0085|",
    "\x00\x01\x07\x08\x0b\x0c\x1b\x7f\x80\x9f\ufffd\ufffe\uffff",
    "\U0010ffff\ue000\U000e0001\U0001f9ff\U00020000\U0002fa1d",
    "▁▁ ▁a _ __ ĠĠ Ġa Ċ",
    "<s>Hello</s> world<s></s><mask> x <mask>y<mask>",
    "a<mask> <mask>  <mask>b  <mask>\n<mask>c",
    "<|end|><|end|> <|end|>x<|en d|><|end|",
    "NewTokenNewToken NewTokens aNewToken NewToken NEWTOKEN newtoken  NewToken,",
    "[CLS] [SEP][MASK] [cls] hello [SEP]",
    "<unk> <pad> <x><X><0x41><0x0A> <0xZZ> <0xe4>",
    "hello hello_hello HELLO hélloHello Hello, Hello. Hello? Hello!",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "...!!!??? --- ——— «» “” ‘’ $€£ +-*/= ~`^|<>",
    "x=1;y=[2,3];z={'a':\"b\"}//c\\d#e@f&g%h",
    "http://example.org/a?b=c&d=e#f user@example.org",
    "MiXeD cAsE CamelCase snake_case kebab-case SCREAMING_CASE",
    "\ttab\vvertical\ffeed\x1c\x1d\x1e\x1funit",
    "ﷺ ㎒ ㍿ ™ ℃ ﹏ ａｂｃ ＡＢＣ １２３ ｱｲｳ ｶﾞ",
    "a\u0300\u0301\u0302\u0303\u0304\u0305b\u0327\u0300 \u0300\u0301",
    "unhappiness tokenization internationalization zzzqqqxxx",
    "e\u0301 \u00e9 \u0344 \u1fee \u2126 \u212b \uac00\u11a8 \u1100\u1161\u11a8",
    "ſ K ﬅ ﬆ 'ſ 'S 'Re I'ſ",
    "\u0915\u093c \u0958 \u09dc \u0b5c \u0f43 \ufb2e \U0001d15e \U00011938",
    "  a   b    c     d      e       f        g ",
]

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJ", "0123456789", "     ", "\n\r\t\v\f \u00a0\u2003\u3000\u200b", ".,;:!?'\"()[]{}<>|\\/@#$%^&*_-+=~`",
    "äöüßéèêñçøåčřžıİĞ", "абвгдежзАБВ", "αβγδΣς", "你好世界日本语", "かなカナーｶﾞ", "한국어가각", "ภาษไทยน้ำ", "नमस्ते़ाि", "שלוםָׁ", "مرحباَُّ",
    "\u0300\u0301\u0302\u0323\u0327\u0308\u0338\u0345\u05b0\u064b\u093c\u3099", "🦀🦙👩👧\u200d\ufe0f🏽🇹🇷", "\x00\x01\x1f\x7f\x80\u00ad\ufeff\ufffd", "▁Ġ_#",
    "½²Ⅷ①٣ﬁﬃ㎒™ａ１", "’“”«»—…",
]
WORDS = [w for line in CORPUS for w in line.split(" ")]


def random_text(rng, specials=SPECIALS):
    """A text that mixes words, scripts, blanks, any code points and what looks like special tokens."""
    parts = []
    for _ in range(rng.choice([1, 2, 3, 5, 8, 13, 30])):
        kind = rng.random()
        if kind < 0.3:
            parts.append(rng.choice(WORDS))
        elif kind < 0.5:
            alphabet = rng.choice(ALPHABETS)
            parts.append("".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 8))))
        elif kind < 0.65:
            parts.append(rng.choice(specials))
        elif kind < 0.75:
            parts.append(rng.choice([" ", "  ", "\n", "\r\n", "\t", " \n ", "   "]))
        elif kind < 0.83:
            parts.append("".join(rng.choice(rng.choice(ALPHABETS)) for _ in range(rng.randrange(1, 10))))
        elif kind < 0.88:
            parts.append(rng.choice(HOSTILE))
        elif kind < 0.93:
            parts.append(unicodedata.normalize(rng.choice(["NFC", "NFD", "NFKC", "NFKD"]), rng.choice(WORDS + HOSTILE[8:14])))
        else:
            for _ in range(rng.randrange(1, 4)):
                c = rng.choice([rng.randrange(0x250), rng.randrange(0x3000), rng.randrange(0x10000), rng.randrange(0x20000), rng.randrange(0x110000)])
                if not 0xD800 <= c < 0xE000:
                    parts.append(chr(c))
        if rng.random() < 0.3:
            parts.append(" ")
    return "".join(parts)
