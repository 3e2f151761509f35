#!/usr/bin/env python3
"""Mistakes that a new user makes, and the exact words and exit code they get: the cases are in mistakes.toml.

A case has `run` (the words after "mekik"), `exit`, and `stderr` and `stdout` as they must be to the letter, but for "..." in them, which
stands for anything. `files` are written into an empty working directory first; it also holds the models of MODELS below. `env` is set in
the environment, `stdin` is given, `needs` is a file without which the case is skipped, `user` runs the program as an ordinary user where
the test itself runs as root. In all texts @DIR@ is the working directory, @BUILD@ the build and @PLUGINS@ the folder of its misbehaving
plugins; a case that names @SMOLLM2@ or @GEMMA3@ is skipped where that model is not there.
"""
import os
import re
import sys
import tomllib

import harness

MODELS = {
    "tiny.gguf": {},
    "base.gguf": {"template": None},
    "silent.gguf": {"template": "{# says nothing #}"},
    "broken.gguf": {"template": "{{ messages }}\n{% frobnicate %}"},
    "raises.gguf": {"template": "{{ raise_exception('Roles must alternate') }}"},
    "no_tokenizer.gguf": {"vocabulary": False, "template": None},
    "no_bos.gguf": {"bos": False},
    "padded.gguf": {"bos": False, "padding": 5},
}
NOBODY = 65534


def matches(expected, got):
    pattern = ".*".join(re.escape(part) for part in expected.split("..."))
    return re.fullmatch(pattern, got, re.DOTALL) is not None


class Case:
    def __init__(self, row):
        self.row = row

    def filled(self, text):
        words = {"@DIR@": self.folder, "@BUILD@": harness.BUILD, "@PLUGINS@": os.path.join(harness.BUILD, "tests", "misbehaving"),
                 "@SMOLLM2@": harness.SMOLLM2, "@GEMMA3@": harness.GEMMA3}
        for word, meaning in words.items():
            if word in text and word.strip("@") in ("SMOLLM2", "GEMMA3", "PLUGINS"):
                harness.need(meaning, meaning)
            text = text.replace(word, meaning)
        return text

    def need(self):
        if "needs" in self.row:
            harness.need(self.filled(self.row["needs"]), self.row["needs"])

    def prepare(self):
        for name, options in MODELS.items():
            harness.tiny(self.folder, name, **options)
        for name, content in self.row.get("files", {}).items():
            harness.write(self.folder, name, self.filled(content))
        for name, mode in self.row.get("modes", {}).items():
            os.chmod(os.path.join(self.folder, name), int(mode, 8))

    def check(self):
        row = self.row
        with harness.scratch() as folder:
            self.folder = os.path.realpath(folder)
            self.need()
            self.prepare()
            more = {}
            if row.get("user") and os.geteuid() == 0:
                os.chmod(folder, 0o755)
                more = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
                if not readable_by_others(harness.PROGRAM):
                    raise harness.Skip("the build is not readable by ordinary users")
            env = harness.environment(**{k: self.filled(v) for k, v in row.get("env", {}).items()})
            done = harness.mekik(*map(self.filled, row["run"]), stdin=row.get("stdin", ""), cwd=self.folder, env=env, timeout=60, **more)
            faults = []
            if done.returncode != row["exit"]:
                faults.append(f"exit code {done.returncode}, expected {row['exit']}")
            for stream in ("stderr", "stdout"):
                expected = self.filled(row.get(stream, "" if row["exit"] != 0 or stream == "stderr" else "..."))
                if not matches(expected, getattr(done, stream)):
                    faults.append(f"{stream} is\n{getattr(done, stream)}expected\n{expected}")
            assert not faults, "mekik " + " ".join(row["run"]) + "\n" + "\n".join(faults)


def readable_by_others(path):
    while path != "/":
        if os.stat(path).st_mode & 0o005 != 0o005:
            return False
        path = os.path.dirname(path)
    return True


def main():
    with open(os.path.join(harness.HERE, "mistakes.toml"), "rb") as file:
        rows = tomllib.load(file)["case"]
    names = [row["name"] for row in rows]
    assert len(names) == len(set(names)), "two cases have one name"
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    harness.main([(row["name"], Case(row).check) for row in rows if only in row["name"]])


main()
