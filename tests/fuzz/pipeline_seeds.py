"""Writes inputs of pipeline.cpp into the folder given: the pipelines of tests/config with what they extend, and --set texts."""
import os
import sys

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "config")


def text(*path):
    with open(os.path.join(FILES, *path), "rb") as file:
        return file.read()


FULL = text("good", "full.toml")
LEAST = b'[model]\npath = "a.toml"\n'
SETS = [b"scheduler.max_batch_tokens=256", b"sampler.0.temperature=0.5", b"model.name=a b", b"cache.memory=1GiB", b"server.listen=['unix:x']",
        b"server.api_key=hidden", b"model.context=1_000", b"backend.devices=[0, 1]", b"sampler.9.top_k=1", b"pipeline.extends=b.toml"]
SEEDS = {
    "least": (LEAST,),
    "full": (FULL.replace(b"full.toml", b"a.toml"),),
    "extends": (b'[pipeline]\nextends = "b.toml"\n[scheduler]\nmax_sequences = 2\n', b'[pipeline]\nextends = "c.toml"\n[[sampler]]\nuse = "standard"\n', LEAST),
    "sets": (LEAST, b"", b"", *SETS[:6]),
    "more_sets": (LEAST, b"", b"", *SETS[6:]),
    "toml": (b'\xef\xbb\xbf# TOML\r\na."b c".d = [1, 0x1F, 1e3, inf, nan, true, 1979-05-27T07:32:00Z]\r\n[x]\ny = """\nlines\\\n  more"""\nz = \'\'\'raw\'\'\'\n',),
}
for name in ("wrong_type", "nested", "out_of_range", "secrets", "unknown_key", "list_or_table", "listen", "deprecated", "sha256", "plugins"):
    SEEDS[name] = (b"\n".join(line for line in text("bad", name + ".toml").split(b"\n") if not line.startswith(b"#")),)

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for name, pieces in SEEDS.items():
    with open(os.path.join(folder, name), "wb") as file:
        file.write(b"\0".join(pieces))
