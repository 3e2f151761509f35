"""A running `mekik serve`, for the tests that need one."""
import json
import re
import signal
import subprocess
import time
import urllib.request

import harness


class Server:
    """Starts `mekik serve` on a free port; `ready` waits until the model is loaded."""

    def __init__(self, *words, program=harness.PROGRAM, ready=True, cwd=None, env=None):
        anywhere = ["--set", 'server.listen=["tcp://127.0.0.1:0"]']
        self.process = subprocess.Popen([program, "serve", *words, *anywhere], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        errors="replace", cwd=cwd, env=env or harness.environment())
        self.log = ""
        self.read_until("listening on ")
        self.base = "http://" + re.search(r"listening on tcp://([0-9.:]+)", self.log)[1]
        if ready:
            self.read_until("is ready on")

    def read_until(self, words):
        while words not in self.log:
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError(f"serve ended with {self.process.wait()}:\n{self.log}")
            self.log += line

    def ask(self, path, body=None, timeout=120):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.read().decode()

    def stream(self, body, timeout=120):
        """The open answer of a streamed completion."""
        request = urllib.request.Request(self.base + "/v1/completions", json.dumps({**body, "stream": True}).encode(), {"Content-Type": "application/json"})
        return urllib.request.urlopen(request, timeout=timeout)

    def end(self, number=signal.SIGTERM, timeout=60):
        """Sends a signal; the exit code and how many seconds the end took."""
        start = time.monotonic()
        self.process.send_signal(number)
        self.log += self.process.communicate(timeout=timeout)[1]
        return self.process.returncode, time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
