"""`mekik model`: what a file is, what it needs, what fits, for people and as JSON; a model that cannot run here is shown all the same."""
import json
import os
import re

import harness
from harness import good, mekik


def for_people():
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        shown = good(mekik("model", model))
        for line in (r"gguf, .* 11 tensors", r"f32 +\d", r"tokenizer: ", r"page llama: 1 layers, width 32", r"needs .* for weights as the backend cpu",
                     r"keys and values: 128 B a token in f32", r"fits: \d+ tokens of context .*; the model was made for 64"):
            assert re.search(line, shown), (line, shown)
        notes = re.findall(r"(?:assumed|note): (.*)", shown)
        assert len(notes) == len(set(notes)), shown


def as_json():
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        shown = json.loads(good(mekik("model", model, "--json", "--tensors")))
        assert shown["types"] == {"f32": sum(t["bytes"] for t in shown["tensors"])} and len(shown["tensors"]) == 11, shown
        assert shown["parameters"] * 4 == shown["types"]["f32"], shown
        assert shown["program"] == {"page": "llama", "layers": 1, "width": 32, "vocabulary": 259, "context": 64}, shown["program"]
        needs = shown["needs"]
        assert needs["fits"] and needs["backend"] == "cpu" and needs["kv_bytes_per_token"] == 2 * 16 * 4, needs
        left = 0.85 * needs["machine_bytes"] - needs["weight_bytes"] - needs["work_bytes"]
        assert abs(needs["longest"] - left / 128) < 1, needs


def other_forms():
    """--set reaches the plan: half the bytes in F16."""
    with harness.scratch() as folder:
        shown = json.loads(good(mekik("model", harness.tiny(folder), "--json", "--set", "cache.kv=f16")))
        assert shown["needs"]["kv"] == "f16" and shown["needs"]["kv_bytes_per_token"] == 64, shown["needs"]


def slower_tier():
    """What the cache may take of the host's memory is planned like everything else."""
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        longest = [json.loads(good(mekik("model", model, "--json", "--set", f"cache.host_memory={size}")))["needs"]["longest"]
                   for size in ("0", "1MiB")]
        assert longest[0] - longest[1] == 2**20 / 128, longest
        half = json.loads(good(mekik("model", model, "--json")))["needs"]["machine_bytes"] // 10 * 9
        shown = good(mekik("model", model, "--set", f"cache.host_memory={half}"))
        assert "does not run here: " in shown and "of its tier in the host's memory" in shown, shown


def too_large():
    with harness.scratch() as folder:
        model = harness.tiny(folder)
        for words in ([], ["--json"]):
            shown = good(mekik("model", model, "--set", "cache.memory=9000GiB", *words))
            assert "beside the model's" in shown, shown
            assert words or "does not run here: " in shown, shown


def what_gives_no_logits():
    """Encoders and rerankers are shown like everything else."""
    for name in ("bert-mean", "bert_rank-plain"):
        path = os.path.join(harness.SOURCE, "tests", "models", "tiny", name)
        assert "page bert: 2 layers" in good(mekik("model", path)), name
        assert json.loads(good(mekik("model", path, "--json")))["program"]["page"] == "bert", name


harness.main([(check.__name__, check) for check in (for_people, as_json, other_forms, slower_tier, too_large, what_gives_no_logits)])
