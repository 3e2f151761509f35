"""The real server on the real model: starts `mekik serve`, asks it over HTTP, reads its metrics. Standard library only."""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["MEKIK_BUILD"]
PROGRAM = os.path.join(BUILD, "bin", "mekik")
MODEL = os.path.abspath("models/SmolLM2-135M-Instruct.Q4_1.gguf")
NAME = "smol"

PIPELINE = """
[model]
path = "{model}"
name = "{name}"
[backend]
use = "cpu"
threads = 2
[cache]
use = "{cache}"
block_tokens = {block_tokens}
memory = "{memory}"
{cache_keys}
[scheduler]
use = "{scheduler}"
{scheduler_keys}
max_batch_tokens = {max_batch_tokens}
max_sequences = {max_sequences}
{samplers}
[[sink]]
use = "prometheus"
[server]
listen = {listen}
"""
DEFAULTS = dict(model=MODEL, name=NAME, cache="none", memory="64MiB", block_tokens=32, max_batch_tokens=256, max_sequences=32,
                listen='["tcp://127.0.0.1:0"]', samplers='[[sampler]]\nuse = "standard"', cache_keys="",
                scheduler="continuous", scheduler_keys="")
FORCE = '[[sampler]]\nuse = "standard"\n[[sampler]]\nuse = "force"'


def need_model():
    if not os.path.exists(MODEL):
        print("skipped: " + MODEL + " is not there (scripts/get-smollm2.sh fetches it)")
        sys.exit(77)


class Mekik:
    """`mekik serve` of a pipeline made from the defaults above, and of `others` beside it. `wait`: until it is ready."""

    def __init__(self, *words, wait=True, others=(), **values):
        self.folder = tempfile.TemporaryDirectory()
        self.pipeline = self.write("pipeline.toml", **values)
        self.start([self.pipeline, *(self.write(f"other{i}.toml", **of) for i, of in enumerate(others)), *words])
        if wait:
            self.wait_until_ready()

    def write(self, file_name, **values):
        path = os.path.join(self.folder.name, file_name)
        with open(path, "w") as file:
            file.write(PIPELINE.format(**{**DEFAULTS, **values}))
        return path

    def start(self, words):
        self.log_path = os.path.join(self.folder.name, "log")
        environment = dict(os.environ, MEKIK_PLUGIN_PATH=os.path.join(BUILD, "tests", "server"))
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen([PROGRAM, "serve", *words], stdout=subprocess.DEVNULL, stderr=log, env=environment)

    @property
    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def wait_for_log(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.log)
            if found:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.002)
        found = re.search(pattern, self.log)
        assert found, f"the log has no {pattern!r}:\n{self.log}"
        return found

    def wait_until_ready(self):
        self.port = int(self.wait_for_log(r"is ready on tcp://127\.0\.0\.1:(\d+)")[1])

    def signal(self, which=signal.SIGTERM):
        self.process.send_signal(which)

    def end(self, seconds=40):
        """The exit code."""
        return self.process.wait(timeout=seconds)

    def stop(self):
        if self.process.poll() is None:
            self.signal()
        return self.end()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            code = self.stop()
            assert kind is not None or code == 0, f"ended with {code}:\n{self.log}"
        self.folder.cleanup()

    # ---- HTTP
    def request(self, method, path, body=None, headers={}, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            if isinstance(body, str):
                body = body.encode()
            connection.request(method, path, body, {"Content-Type": "application/json", **headers} if body is not None else headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def post(self, path, body, status=200):
        """The parsed answer; it must have this status."""
        code, _, text = self.request("POST", path, body)
        assert code == status, f"{path} {str(body)[:300]}: {code} {text[:500]!r}"
        return json.loads(text)

    def refused(self, path, body, param=None, code=None, status=400):
        error = self.post(path, body, status)["error"]
        assert set(error) == {"message", "type", "param", "code", "request_id"}, error
        assert param is None or error["param"] == param, (error, param)
        assert code is None or error["code"] == code, (error, code)
        return error["message"]

    def chat(self, text="Why is the sky blue?", **fields):
        return self.post("/v1/chat/completions", {"model": NAME, "messages": [{"role": "user", "content": text}], "temperature": 0, **fields})

    def complete(self, prompt="The sky is", **fields):
        return self.post("/v1/completions", {"model": NAME, "prompt": prompt, "temperature": 0, **fields})

    def stream(self, path, body):
        """The parsed chunks of a stream, after its frame was checked."""
        code, headers, text = self.request("POST", path, dict(body, stream=True))
        assert code == 200, text
        return chunks_of(text)

    def metrics(self):
        code, _, text = self.request("GET", "/metrics")
        assert code == 200
        return parse_metrics(text.decode())

    def metric(self, name, **labels):
        return sum(value for (series, of), value in self.metrics().items() if series == name and labels.items() <= dict(of).items())

    def used_blocks(self):
        now = self.metrics()
        of = lambda name: sum(v for (series, _), v in now.items() if series == name)
        return of("mekik_kv_blocks") - of("mekik_kv_blocks_free"), of("mekik_num_requests_running"), of("mekik_num_requests_waiting")

    def wait_until_idle(self, seconds=5):
        """Nothing runs, nothing waits, every KV block is free."""
        end = time.monotonic() + seconds
        while (state := self.used_blocks()) != (0, 0, 0):
            assert time.monotonic() < end, f"used blocks, running, waiting: {state}"
            time.sleep(0.01)


def chunks_of(text):
    events = text.decode().split("\n\n")  # strict: every byte of a stream is UTF-8
    assert events.pop() == "" and events[-1] == "data: [DONE]", events[-3:]
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    return [json.loads(event[6:]) for event in events[:-1]]


def parse_metrics(text):
    """The text format, strictly: {(name, ((label, value), ..)): value}."""
    out, kinds, helped = {}, {}, set()
    sample = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in helped and len(line.split(" ", 3)[3]) > 0, line
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name in helped and name not in kinds and kind in ("counter", "gauge", "histogram"), line
            kinds[name] = kind
        else:
            found = sample.fullmatch(line)
            assert found, line
            family = found[1] if found[1] in kinds else re.sub(r"_(bucket|sum|count)$", "", found[1])
            assert family in kinds and (family == found[1]) == (kinds[family] != "histogram"), line
            labels = tuple(re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"', found[2] or ""))
            value = float(found[3])
            assert value == value and (found[1], labels) not in out, line
            out[found[1], labels] = value
    return out
