"""What the tests of the program share: where things are, running it, and a runner that names every failed check."""
import os
import subprocess
import sys
import tempfile
import time
import traceback

import tiny_model

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("MEKIK_SOURCE") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("MEKIK_BUILD") or os.path.join(SOURCE, "build", "release")
CASES = os.environ.get("MEKIK_CASES") or os.path.join(os.path.dirname(SOURCE), "shared", "cases")
MODELS = os.environ.get("MEKIK_MODELS") or os.path.join(SOURCE, "models")
PROGRAM = os.path.join(BUILD, "bin", "mekik")
SMOLLM2 = os.path.join(MODELS, "SmolLM2-135M-Instruct.Q4_1.gguf")
GEMMA3 = os.path.join(MODELS, "gemma-3-270m-q4_k_m.gguf")
SKIPPED = 77


class Skip(Exception):
    """What a check needs is not on this machine."""


def environment(**changes):
    """The environment without what could change the program; None takes a variable out."""
    out = {k: v for k, v in os.environ.items() if not k.startswith("MEKIK_")}
    for name, value in changes.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = value
    return out


def mekik(*words, program=PROGRAM, stdin="", cwd=None, env=None, timeout=300, **more):
    return subprocess.run([program, *words], input=stdin, capture_output=True, text=True, errors="replace", cwd=cwd,
                          env=environment() if env is None else env, timeout=timeout, **more)


def good(done):
    assert done.returncode == 0, f"{done.args} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def scratch():
    return tempfile.TemporaryDirectory(prefix="mekik-test-")


def write(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def tiny(folder, name="tiny.gguf", **options):
    return write(folder, name, tiny_model.model(**options))


def need(path, what):
    if not os.path.exists(path):
        raise Skip(f"{what} is not there")
    return path


def main(checks):
    """Runs (name, function) pairs. 0: all passed; 77: none failed, but all were skipped."""
    failed = passed = 0
    for name, check in checks:
        start = time.monotonic()
        try:
            check()
            passed += 1
            print(f"ok      {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Skip as why:
            print(f"skipped {name}: {why}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {name}", flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed, {len(checks) - passed - failed} skipped")
    sys.exit(1 if failed else SKIPPED if not passed else 0)
