#!/usr/bin/env python3
"""MEKIK_STATIC_PLUGINS=ON: one program with its plugins inside builds, needs no plugin folder, and answers as the shared one does.

    static_build.py BUILD-OF-CMAKE
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "app"))
import harness
from harness import good, mekik

CMAKE = sys.argv[1] if len(sys.argv) > 1 else "cmake"
BUILD = os.path.join(os.path.dirname(harness.BUILD), "static")  # kept: the next run builds only what has changed


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-4000:]


def builds_and_answers():
    run(CMAKE, "-S", harness.SOURCE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DMEKIK_STATIC_PLUGINS=ON", "-DMEKIK_TESTS=OFF")
    run(CMAKE, "--build", BUILD, "--target", "product", "--parallel", "2")
    with harness.scratch() as folder:
        run(CMAKE, "--install", BUILD, "--prefix", folder)
        program = os.path.join(folder, "bin", "mekik")
        assert not os.path.exists(os.path.join(folder, "lib", "mekik"))
        components = json.loads(good(mekik("plugins", "--json", program=program)))["components"]
        shared = json.loads(good(mekik("plugins", "--json")))["components"]
        assert [(c["kind"], c["name"]) for c in components] == [(c["kind"], c["name"]) for c in shared]
        assert all(c["library"] == "(built in)" for c in components), components
        for model in (harness.tiny(folder), harness.SMOLLM2):
            if os.path.exists(model):
                words = ["run", model, "-p", "Why is the sky blue?", "--max-tokens", "8", "--temperature", "0", "--json"]
                assert json.loads(good(mekik(*words, program=program)))["tokens"] == json.loads(good(mekik(*words)))["tokens"]


harness.main([("a program with its plugins inside", builds_and_answers)])
