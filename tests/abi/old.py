#!/usr/bin/env python3
"""Plugins built with each frozen header run under today's host, and today's plugins under hosts built with each frozen header."""
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "app"))
import harness
import tiny_model

FROZEN = sorted(glob.glob(os.path.join(harness.SOURCE, "sdk", "abi", "v*")))
KINDS = ["scheduler", "cache", "sampler", "sink"]
MAP = os.path.join(harness.SOURCE, "sdk", "cmake", "mekik.map")


def build(header, out, source, *more):
    subprocess.run(["cc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I" + header, os.path.join(HERE, "old", source), "-o", out, *more], check=True)


def old_plugins(header, folder):
    for number, kind in enumerate(KINDS, 1):
        library = os.path.join(folder, f"{kind}_old.so")
        build(header, library, "old.c", f"-DKIND={number}", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,--version-script=" + MAP)
        result = subprocess.run([os.path.join(harness.BUILD, "bin", "mekik-validate"), "--quiet", library], capture_output=True, text=True, timeout=600)
        assert result.returncode == 0, result.stdout
    model, log = os.path.join(folder, "tiny.gguf"), os.path.join(folder, "events.txt")
    with open(model, "wb") as f:
        f.write(tiny_model.model())
    pipeline = os.path.join(folder, "old.toml")
    with open(pipeline, "w", encoding="utf-8") as f:
        f.write('[model]\npath = "tiny.gguf"\n[scheduler]\nuse = "old"\n[cache]\nuse = "old"\n[[sampler]]\nuse = "old"\n[[sampler]]\nuse = "standard"\n'
                f'[[sink]]\nuse = "old"\npath = "{log}"\n')
    words = ["--tokens", "97,98,99", "--max-tokens", "12", "--temperature", "0", "--ignore-eos", "--json"]
    old = harness.mekik("run", pipeline, *words, env=harness.environment(MEKIK_PLUGIN_PATH=folder))
    assert old.returncode == 0, old.stderr
    new = harness.mekik("run", model, *words)
    assert new.returncode == 0, new.stderr
    tokens = [__import__("json").loads(r.stdout)["tokens"] for r in (old, new)]
    assert tokens[0] == tokens[1] and len(tokens[0]) == 12, tokens
    with open(log, encoding="utf-8") as f:
        assert f.read().startswith("request_finished "), "the old sink got no event"


def old_host(header, folder):
    program = os.path.join(folder, "old_host")
    build(header, program, "host.c", "-ldl")
    plugins = sorted(glob.glob(os.path.join(harness.BUILD, "lib", "mekik", "*.so")))
    result = subprocess.run([program, *plugins], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(result.stdout.splitlines()) >= len(plugins) > 0, result.stdout


def main():
    assert FROZEN
    for header in FROZEN:
        for check in (old_plugins, old_host):
            with tempfile.TemporaryDirectory() as folder:
                check(header, folder)
                print(os.path.basename(header), check.__name__)


main()
