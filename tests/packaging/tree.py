"""An installed tree for the tests that need one: what somebody has who has only the installed package."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "app"))
import harness

CMAKE = sys.argv[1] if len(sys.argv) > 1 else "cmake"


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=280, **more)
    assert done.returncode == 0, f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Installed:
    """An installed tree that was moved after it was made."""

    def __enter__(self):
        self.scratch = harness.scratch()
        folder = os.path.realpath(self.scratch.name)
        run(CMAKE, "--install", harness.BUILD, "--prefix", os.path.join(folder, "first"))
        self.prefix = os.path.join(folder, "moved", "here and there")
        os.makedirs(os.path.dirname(self.prefix))
        os.rename(os.path.join(folder, "first"), self.prefix)
        self.program = os.path.join(self.prefix, "bin", "mekik")
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()

    def path(self, *parts):
        return os.path.join(self.prefix, *parts)
