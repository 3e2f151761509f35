"""Writes inputs of page.cpp into the folder given: a small page of every construct, and real pages with the page they extend and a model."""
import os
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

SMALL = """[architecture]
name = "small"
matches = { gguf = ["tiny"], hf = ["Tiny"] }
matches_when = "width > 0"
prefix = { model = ["model.", ""] }
ignore = ["*.unused"]
refuse = [ { when = "heads > 100", say = "so many heads" } ]
[hparams]
width = { gguf = "{arch}.width", hf = "hidden" }
layers = { gguf = "{arch}.layers" }
context = { gguf = "{arch}.context", value = "min(v, 100)" }
vocab = { gguf = "{arch}.vocab", default = "dim(embed, 0)" }
kind = { gguf = "{arch}.kind", default = "'silu'", map = { a = "'gelu'" } }
heads = "4"
head_dim = "width / heads"
eps = "1e-6"
other = { gguf = "{arch}.other", optional = true }
[rope.main]
dim = "head_dim"
base = "10000.0"
scaling = { gguf = "{arch}.rope.scaling" }
[weights]
embed = { gguf = "embed", shape = ["vocab", "width"] }
norm = { gguf = "{l}.norm", shape = ["width"], value = "1 + v" }
wq = { gguf = { from = "{l}.q", view = ["heads", "head_dim / 2", 2, "width"], order = [0, 2, 1, 3] }, shape = ["heads", "head_dim", "width"] }
wo = { gguf = "{l}.o", shape = ["width", "heads * head_dim"] }
up = { gguf = { join = ["{l}.q", "{l}.o"] }, shape = ["2 * width", "width"] }
q_norm = { gguf = "{l}.q_norm", shape = ["head_dim"], optional = true }
[program]
begin = ["x = embedding(tokens, embed)"]
layer = [
  "n = rms_norm(x, norm, eps)",
  { when = "l % 2 == 0 and other == none", do = ["q = rope(linear(n, wq), main)"], else = ["q = linear(n, wq)"] },
  "x = x + linear(attention(q, q, q, window = 8 if l == 1 else 0), wo)",
]
end = ["hidden = take_rows(x)", "logits = softcap(linear(hidden, embed), 30.0)"]
"""
OTHER = """[architecture]
name = "other"
extends = "small"
matches = { gguf = ["tiny"] }
matches_when = "width < 0"
[hparams]
heads = "2"
"""
MODEL = """{"format": "gguf", "layers": 2,
 "config": {"general.architecture": "tiny", "tiny.width": 64, "tiny.layers": 2, "tiny.context": 128,
  "tiny.rope.scaling.type": "linear", "tiny.rope.scaling.factor": 2.0},
 "tensors": [["embed", "f32", [96, 64]], ["{l}.norm", "f32", [64]], ["{l}.q", "f16", [64, 64]], ["{l}.o", "q8_0", [64, 64]]]}"""


def text(*path):
    with open(os.path.join(SOURCE, *path)) as file:
        return file.read()


SEEDS = {"small": (SMALL, OTHER, MODEL)}
for page, model in (("llama", "llama"), ("qwen2", "qwen2"), ("gemma3", "gemma3"), ("phi3", "phi3"), ("gpt2", "gpt2")):
    SEEDS[page] = (text("configs", "architectures", page + ".toml"), text("configs", "architectures", "decoder.toml"),
                   text("tests", "programs", "gguf", model + ".json"))

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for name, pieces in SEEDS.items():
    with open(os.path.join(folder, name), "wb") as file:
        file.write(b"\0".join(piece.encode() for piece in pieces))
