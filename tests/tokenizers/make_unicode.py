#!/usr/bin/env python3
"""Asks the `tokenizers` package what it takes every code point for, and writes core/text/hf/unicode_sets.cpp or unicode_scripts.cpp.

Its parts follow different versions of Unicode (one crate each), so the sets are taken from the package itself. What concerns
normalisation and patterns is written as the difference to Unicode 14, which PCRE2 10.42 and utf8proc 2.8 cover.

    python3 tests/tokenizers/make_unicode.py sets > core/text/hf/unicode_sets.cpp
    python3 tests/tokenizers/make_unicode.py scripts > core/text/hf/unicode_scripts.cpp
    clang-format-14 -i core/text/hf/unicode_s*.cpp
"""
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

assert unicodedata.unidata_version == "14.0.0", "run with Python 3.11, whose unicodedata is Unicode 14"
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def isolated(pre, gap="a"):
    """The code points at which `pre` cuts a text of `gap`s."""
    found = set()
    for i in range(0, len(ALL), 256):
        block = ALL[i:i + 256]
        pieces = pre.pre_tokenize_str("".join(gap + chr(c) for c in block) + gap)
        edges = {o[0] for _, o in pieces} | {o[1] for _, o in pieces}
        found |= {c for k, c in enumerate(block) if 2 * k + 1 in edges}
    return found


def matched(pattern):
    pre = pre_tokenizers.Split(Regex(pattern), "isolated")
    found = set()
    for i in range(0, len(ALL), 256):
        block = ALL[i:i + 256]
        pieces = {o for _, o in pre.pre_tokenize_str("".join("\x01" + chr(c) for c in block) + "\x01")}
        found |= {c for k, c in enumerate(block) if (2 * k + 1, 2 * k + 2) in pieces}
    return found


def removed(normalizer):
    return {c for c in ALL if normalizer.normalize_str("a" + chr(c) + "a") == "aa"}


def bert(**options):
    chosen = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**chosen, **options})


def bounds(points):
    """Begin and end (exclusive) of every range; surrogates may be inside."""
    out = []
    for c in sorted(points):
        if out and (out[-1] == c or (out[-1] == 0xD800 and c == 0xE000)):
            out[-1] = c + 1
        else:
            out += [c, c + 1]
    return out


def condensed(inside, outside):
    """As few ranges as possible with all of `inside` and nothing of `outside`; the rest may be either."""
    chosen, last = set(), None
    for c in ALL:
        last = True if c in inside else False if c in outside else last
        if last:
            chosen.add(c)
    return chosen


def table(name, points):
    numbers = ", ".join(hex(x) for x in bounds(points))
    print(f"constexpr char32_t {name}[] = {{{numbers}}};")


def scripts():
    """(first code point, number of its script), 0 for any; a number per script in order of appearance."""
    pre = pre_tokenizers.UnicodeScripts()
    known = isolated(pre, "a") | isolated(pre, "\u044f")
    representatives, runs, last = [], [], None
    for c in ALL:
        if c not in known:
            number = 0
        elif last is not None and len(pre.pre_tokenize_str(chr(last) + chr(c))) == 1:
            number = representatives.index(script) + 1
        else:
            for script in representatives:
                if len(pre.pre_tokenize_str(chr(script) + chr(c))) == 1:
                    break
            else:
                script = c
                representatives.append(c)
            number = representatives.index(script) + 1
        if c in known:
            last = c
        if not runs or runs[-1][1] != number:
            runs.append((c, number))
    return runs


HEAD = ("// Written by tests/tokenizers/make_unicode.py; what the numbers mean stands in unicode.hpp.\n"
        '#include "text/hf/unicode.hpp"\n\nnamespace mekik::text::hf {\n\nnamespace {\n')


def print_scripts():
    print(HEAD)
    print("constexpr ScriptRun kScripts[] = {" + ", ".join(f"{{{hex(a)}, {b}}}" for a, b in scripts()) + "};")
    print("\n}  // namespace\n\nstd::span<const ScriptRun> script_runs() { return kScripts; }\n\n}  // namespace mekik::text::hf")


def print_sets():
    sets = {
        "punctuation": isolated(pre_tokenizers.Punctuation()),
        "numeric": isolated(pre_tokenizers.Digits(True)),
        "word": set(ALL) - isolated(pre_tokenizers.Whitespace()),
        "mark_nonspacing": removed(bert(strip_accents=True)),
        "combining_mark": removed(normalizers.StripAccents()),
        "control": removed(bert(clean_text=True)),
    }
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    # What later versions assign neither decomposes nor has a class here.
    later = {c for c in ALL if unicodedata.category(chr(c)) == "Cn"}
    changed = {c for c in ALL if nfkd.normalize_str(chr(c)) != chr(c)}
    other = {c for c in ALL if any(n.normalize_str(chr(c)) != unicodedata.normalize(k, chr(c)) for k, n in (("NFD", nfd), ("NFKD", nfkd)))}
    assert not other & changed
    sets["undecomposed"] = condensed(later | other, changed)
    marks = {c for c in ALL if unicodedata.combining(chr(c)) != 0}
    without = {c for c in marks if unicodedata.combining(chr(c)) != 240 and nfd.normalize_str("a\u0345" + chr(c)) == "a\u0345" + chr(c)}
    sets["class_0"] = condensed(later | without, marks - without)
    lower = ((c, normalizers.Lowercase().normalize_str(chr(c))) for c in ALL)
    lower = [(c, ord(l)) for c, l in lower if l != chr(c).lower() and len(l) == 1]
    print(HEAD)
    for name, points in sets.items():
        table("k_" + name, points)
    print("constexpr LowerPair kLower[] = {" + ", ".join(f"{{{hex(a)}, {hex(b)}}}" for a, b in lower) + "};")
    joined = []
    for category in ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Cf").split():
        new = matched(r"\p{%s}" % category) - {c for c in ALL if unicodedata.category(chr(c)) == category}
        if new:
            table("k_later_" + category, new)
            joined.append(category)
    print("\n}  // namespace\n\nstd::span<const char32_t> bounds(UnicodeSet set) {\n  switch (set) {")
    for name in sets:
        print(f"    case UnicodeSet::{name}: return k_{name};")
    print("  }\n  return {};\n}\n\nstd::span<const LowerPair> later_lower() { return kLower; }\n")
    print("std::span<const char32_t> later_category(std::string_view category) {")
    for category in joined:
        print(f'  if (category == "{category}") return k_later_{category};')
    print("  return {};\n}\n\n}  // namespace mekik::text::hf")


if __name__ == "__main__":
    {"sets": print_sets, "scripts": print_scripts}[sys.argv[1]]()
