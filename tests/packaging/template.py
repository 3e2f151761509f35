#!/usr/bin/env python3
"""sdk/template outside of the tree, against an installed mekik: it builds, its tests pass, and the engine runs one plugin of each kind.

    template.py BUILD-OF-CMAKE
"""
import json
import os
import shutil
import struct
import subprocess
import sys

from tree import CMAKE, Installed, run
import harness
from harness import good, mekik

KINDS = {"backend": "thin", "cache": "lfu", "drafter": "again", "loader": "npy", "sampler": "no_repeat", "scheduler": "shortest",
         "scheme": "int8_rows", "sink": "csv"}
LINES = {"scheduler_shortest.cpp": 40, "sink_csv.cpp": 30, "scheme_int8_rows.cpp": 80, "loader_npy.cpp": 120}  # fewer than these
TINY = os.path.join(harness.SOURCE, "tests", "models", "tiny", "llama-plain")
SCENARIO = """[scenario]
duration = "20s"
[scheduler]
use = "shortest"
[cache]
use = "lfu"
memory = "8MiB"
[costs]
step_us = 3000
token_us = 60
token_bytes = "8KiB"
[[load]]
name = "all"
rate = 5
prompt = { lognormal = [200, 1.0], max = 900 }
answer = { fixed = 20 }
prefix_groups = 8
prefix_tokens = 64
"""
PIPELINE = """[model]
path = "tiny.gguf"
[backend]
use = "thin"
[scheduler]
use = "shortest"
[cache]
use = "lfu"
memory = "1MiB"
[draft]
use = "again"
[[sampler]]
use = "no_repeat"
no_repeat_ngram_size = 3
[[sampler]]
use = "ban"
ban_from = 256
[[sampler]]
use = "standard"
"""


class Template:
    """The template as a stranger builds it: found by the PATH alone, in a folder of its own."""

    def __init__(self, tree):
        self.tree, self.folder = tree, os.path.join(os.path.dirname(tree.prefix), "mine")
        shutil.copytree(tree.path("share", "mekik", "template"), self.folder)
        self.build = os.path.join(self.folder, "build")
        self.env = harness.environment(PATH=tree.path("bin") + os.pathsep + os.environ["PATH"], MEKIK_PLUGIN_PATH=self.build)

    def make(self):
        run(CMAKE, "-S", self.folder, "-B", self.build, "-G", "Ninja", env=self.env)
        run(CMAKE, "--build", self.build, env=self.env)

    def mekik(self, *words):
        return mekik(*words, program=self.tree.program, env=self.env, cwd=self.folder)


def numpy_folder(folder, quantize):
    """The tiny model as .npy files; quantized: signed bytes with a scale a row."""
    os.makedirs(folder)
    with open(os.path.join(TINY, "config.json")) as file:
        config = json.load(file)
    with open(os.path.join(TINY, "model.safetensors"), "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    for name, tensor in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        raw, shape = data[8 + length + begin:8 + length + end], tensor["shape"]
        if quantize and "proj" in name:
            n, k = shape
            values = struct.unpack(f"<{n * k}f", raw)
            scales = [max(abs(v) for v in values[i * k:i * k + k]) / 127 for i in range(n)]
            save(folder, name + "_scale", "<f4", [n], struct.pack(f"<{n}f", *scales))
            save(folder, name, "|i1", shape, struct.pack(f"{n * k}b", *(round(v / scales[i // k]) for i, v in enumerate(values))))
        else:
            save(folder, name, "<f4", shape, raw)
    if quantize:
        config["quantization_config"] = {"quant_method": "int8_rows"}
    harness.write(folder, "config.json", json.dumps(config))
    return folder


def save(folder, name, kind, shape, raw):
    shape = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    harness.write(folder, name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + raw)


def short_enough(template):
    for name, most in LINES.items():
        with open(os.path.join(template.folder, "src", name)) as file:
            lines = len(file.readlines())
        assert lines < most, f"{name} has {lines} lines; it should show that fewer than {most} are enough"
    with open(os.path.join(template.folder, "CMakeLists.txt")) as file:
        assert len(file.readlines()) <= 10


def own_tests(template):
    run("ctest", "--test-dir", template.build, "--output-on-failure", env=template.env)


def described(template):
    for kind, name in KINDS.items():
        shown = good(template.mekik("describe", f"{kind}/{name}", "--json"))
        assert json.loads(shown)[0]["name"] == name
        file = os.path.join(template.build, f"{kind}_{name}.so")
        symbols = run("nm", "-D", "--defined-only", file).split()
        assert symbols[2:] == ["mekik_plugin_v0"], symbols


def simulated(template):
    harness.write(template.folder, "s.toml", SCENARIO)
    report = good(template.mekik("simulate", "s.toml"))
    assert report.startswith("shortest scheduler, lfu cache"), report
    assert "broke a limit" not in report


def answers(template):
    """A pipeline of nothing but ours: the banned runs do not come, the CSV has a row, and every token is the reference's."""
    harness.tiny(template.folder, "tiny.gguf")
    harness.write(template.folder, "p.toml", PIPELINE + '[[sink]]\nuse = "csv"\npath = "out.csv"\n')
    words = ["run", "p.toml", "--tokens", "1,2,3", "--max-tokens", "30", "--temperature", "0", "--ignore-eos", "--json"]
    tokens = json.loads(good(template.mekik(*words)))["tokens"]
    assert len(tokens) == 30 and max(tokens) < 256, tokens
    runs = [tuple(tokens[i:i + 3]) for i in range(28)]
    assert len(set(runs)) == 28, "a run of three came twice"
    assert json.loads(good(template.mekik(*words, "--set", "backend.use=reference")))["tokens"] == tokens
    with open(os.path.join(template.folder, "out.csv")) as file:
        row = file.readlines()[0].strip().split(",")
    assert row[1:4] == ["length", "3", "30"], row


def read_from_numpy(template):
    """The loader gives the same logits as the safetensors file, to the bit; with the scheme they are near, and those of the decoded weights."""
    def logits(path, *more):
        pipeline = harness.write(template.folder, "n.toml", f'[model]\npath = "{path}"\n' + "".join(more))
        return json.loads(good(template.mekik("logits", pipeline, "--tokens", "1,2,3,4", "--json", "--set", "backend.use=reference")))["logits"][0]

    npy = 'loader = "npy"\n'
    plain = logits(numpy_folder(os.path.join(template.folder, "plain"), False), npy)
    assert plain == logits(TINY), "the same weights, other logits"
    near = logits(numpy_folder(os.path.join(template.folder, "bytes"), True), npy)
    spread = max(plain) - min(plain)
    far = max(abs(a - b) for a, b in zip(plain, near))
    assert 0 < far < 0.05 * spread, (far, spread)


def in_rust(template):
    rustc = next((r for r in ("/usr/bin/rustc", shutil.which("rustc")) if r and os.path.exists(r)), None)
    if rustc is None:
        raise harness.Skip("rustc is not installed")
    run(os.path.join(template.folder, "rust", "build.sh"), template.build, env={**template.env, "RUSTC": rustc})
    harness.tiny(template.folder, "tiny.gguf")
    harness.write(template.folder, "r.toml", '[model]\npath = "tiny.gguf"\n[[sink]]\nuse = "slow"\nslower_than = "1us"\n')
    done = template.mekik("run", "r.toml", "--tokens", "1", "--max-tokens", "2")
    assert done.returncode == 0 and "first token after" in done.stderr, done


def main():
    with Installed() as tree:
        template = Template(tree)
        checks = [("it builds", template.make)]
        checks += [(check.__name__, lambda c=check: c(template)) for check in
                   (short_enough, own_tests, described, simulated, answers, read_from_numpy, in_rust)]
        harness.main(checks)


main()
