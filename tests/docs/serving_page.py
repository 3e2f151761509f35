#!/usr/bin/env python3
"""Checks every pipeline of docs/serving.md against a model."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "app"))
import harness

with open(os.path.join(harness.SOURCE, "docs", "serving.md"), encoding="utf-8") as page:
    TEXT = page.read()
SECTIONS = [(title, re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
            for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)]


def fits(title, pipelines):
    def check():
        assert pipelines, "no pipeline is shown"
        with harness.scratch() as folder:
            harness.tiny(folder, "tiny.gguf")
            harness.write(folder, "model.toml", '[model]\npath = "tiny.gguf"\n[cache]\nmemory = "1MiB"\n')
            for i, pipeline in enumerate(pipelines):
                harness.write(folder, f"{i}.toml", pipeline)
                done = harness.mekik("check", f"{i}.toml", cwd=folder)
                assert done.returncode == 0 and "fits together" in done.stdout, f"{pipeline}{done.stdout}{done.stderr}"
    return title.lower(), check


def commands_are_there():
    for words in re.findall(r"`mekik (describe [\w/]+)`", TEXT) + [f"describe {name}" for name in re.findall(r"`((?:cache|draft|scheduler)/\w+|server)`", TEXT)]:
        assert harness.mekik(*words.split()).returncode == 0, words


harness.main([fits(title, pipelines) for title, pipelines in SECTIONS] + [("commands", commands_are_there)])
