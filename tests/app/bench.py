"""`mekik bench`: every test that was asked for, numbers that fit together, and what cannot be measured is refused before anything runs."""
import json

import harness
from harness import good, mekik


def misused(result, *parts, code=2):
    assert result.returncode == code, (result.returncode, result.stderr)
    for part in parts:
        assert part in result.stderr, (part, result.stderr)


def numbers():
    with harness.scratch() as folder:
        shown = json.loads(good(mekik("bench", harness.tiny(folder), "--prefill", "8,16", "--decode", "4,12", "--depth", "0,32", "--sequences", "1,2",
                                      "--runs", "3", "--ops", "--json", "--set", "cache.block_tokens=8")))
        tests = shown["tests"]
        assert [t["name"] for t in tests[:5]] == ["prefill 8", "prefill 16", "decode 4", "decode 12", "prefill 8 at 32"], tests
        assert len(tests) == 16 and tests[-1]["name"] == "decode 12 at 32, 2 sequences", tests[-1]
        assert min(shown["roof"].values()) > 1e6 and len(shown["machine"]["id"]) == 12 and shown["machine"]["cores"] >= 1, shown
        for test in tests:
            rate = test["tokens_per_second"]
            assert len(rate["runs"]) == 3 and 0 < rate["min"] <= rate["median"] <= rate["max"] and rate["median"] in rate["runs"], rate
            times = test["ttft_seconds" if test["kind"] == "prefill" else "tpot_seconds"]
            assert 0 < times["p50"] <= times["p99"], test
            if test["kind"] == "decode" and test["sequences"] == 1:
                assert 0.3 < rate["median"] * times["p50"] < 3, test
            assert 0 < test["of_roof"] < 2 and test["bound"] in ("memory", "products"), test
            rows = {row["operation"]: row for row in test["operations"]}
            assert sum(row["seconds"] for row in rows.values()) > 0 and "attention" in rows, rows


def products():
    """By the shapes of the tiny model: width 32, 2 heads of 16, one for keys and values, 64 within, 259 tokens; F32."""
    with harness.scratch() as folder:
        shown = json.loads(good(mekik("bench", harness.tiny(folder), "--prefill", "16", "--decode", "", "--runs", "1", "--ops", "--json")))
        rows = shown["tests"][0]["operations"]
        linear = sum(row["f32_products"] for row in rows if row["operation"].startswith("linear") or row["operation"] == "qkv_rope_append")
        assert linear == 16 * (32 * 32 + 2 * 16 * 32 + 32 * 32 + 3 * 32 * 64) + 259 * 32, rows
        assert sum(row["int8_products"] for row in rows) == 0, rows
        attention, = (row for row in rows if row["operation"] == "attention")
        assert attention["f32_products"] == 16 * 8 * 2 * 32, attention  # 8 positions on average, of 2 heads, a key and a value of 16


def for_people():
    with harness.scratch() as folder:
        shown = good(mekik("bench", harness.tiny(folder), "--prefill", "8", "--decode", "8", "--runs", "1", "--ops"))
        for part in ("machine  ", "model    ", "roof     ", "tokens/s", "prefill 8 ", "decode 8 ", "% ", "operation"):
            assert part in shown, (part, shown)


def another_backend():
    """One that does not say what it could do is measured all the same, and cannot be taken apart."""
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        words = ("bench", model, "--prefill", "8", "--decode", "4", "--runs", "1", "--set", "backend.use=reference")
        shown = json.loads(good(mekik(*words, "--json")))
        assert "roof" not in shown and "of_roof" not in shown["tests"][0] and len(shown["tests"]) == 2, shown
        misused(mekik(*words, "--ops"), "the backend reference does not say where its time goes", code=1)


def mistakes():
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        misused(mekik("bench", model, "--prefill", "0", "--decode", "8,", "--depth", "-1", "--sequences", "two"),
                "--prefill: give whole numbers from 1", "--decode: ", "--depth: ", "--sequences: ")
        misused(mekik("bench", model, "--prefill", "", "--decode", ""), "nothing to measure")
        misused(mekik("bench", model, "--runs", "0"), "--runs")
        misused(mekik("bench", model, "--prefill", "64", "--decode", "8", "--depth", "60", "--sequences", "1,9999"), "9999")
        misused(mekik("bench", model, "--prefill", "64", "--decode", "8", "--depth", "0,60", "--sequences", "1,99"), "prefill 64: 65 tokens",
                "decode 8 at 60: 69 tokens", "decode 8, 99 sequences: scheduler.max_sequences is", code=1)
        misused(mekik("bench", model, "--prefill", "8", "--decode", "", "--depth", "32", "--set", "cache.use=none"), "the cache kept 0", code=1)
        misused(mekik("bench", f"{harness.SOURCE}/tests/models/tiny/bert-mean"), "not run to generate text", code=1)


harness.main([(check.__name__, check) for check in (numbers, products, for_people, another_backend, mistakes)])
