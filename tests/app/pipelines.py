#!/usr/bin/env python3
"""Every file in pipelines/ is started: checked, asked in the terminal, and served where it has a server."""
import json
import os
import tomllib

import harness
from harness import good, mekik
from serving import Server

FOLDER = os.path.join(harness.SOURCE, "pipelines")


def read(name):
    """With what it extends; tables merge, the file's own keys win."""
    with open(os.path.join(FOLDER, name), "rb") as file:
        own = tomllib.load(file)
    below = read(own["pipeline"]["extends"]) if "extends" in own.get("pipeline", {}) else {}
    return {**below, **{key: {**below.get(key, {}), **value} if isinstance(value, dict) else value for key, value in own.items()}}


def start(name):
    path = os.path.join(FOLDER, name)
    model = read(name)["model"]["path"]
    harness.need(os.path.join(FOLDER, model), model)
    backend = read(name).get("backend", {}).get("use")
    checked = mekik("check", path)
    if backend and (mekik("describe", f"backend/{backend}").returncode != 0 or "has no device 0" in checked.stderr):
        raise harness.Skip(f"the backend {backend} or its device is not there")
    shown = good(checked)
    assert "fits together" in shown, shown
    answer = json.loads(good(mekik("run", path, "-p", "What is 2 + 2?", "--max-tokens", "6", "--temperature", "0", "--json")))
    assert answer["text"].strip(), answer
    if "server" not in read(name):
        return
    with Server(path) as server:
        served = json.loads(server.ask("/v1/models"))["data"][0]["id"]
        body = {"model": served, "messages": [{"role": "user", "content": "What is 2 + 2?"}], "max_tokens": 6, "temperature": 0}
        spoken = json.loads(server.ask("/v1/chat/completions", body))["choices"][0]["message"]["content"]
        assert spoken == answer["text"], (spoken, answer)
        if any(sink["use"] == "prometheus" for sink in read(name).get("sink", [])):
            assert "mekik_" in server.ask("/metrics")
        assert server.end()[0] == 0


def fragment(name):
    """A file without a model is a part of others: it is sound but for that, and another one extends it."""
    done = mekik("check", os.path.join(FOLDER, name))
    complaint = [line for line in done.stderr.splitlines() if ": error: " in line]
    assert done.returncode == 2 and len(complaint) == 1 and "lacks 'path'" in complaint[0], done
    users = [other for other in FILES if read(other).get("pipeline", {}).get("extends") == name]
    assert users, f"no pipeline extends {name}"


FILES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".toml"))
harness.main([(name, lambda name=name: start(name) if "model" in read(name) else fragment(name)) for name in FILES])
