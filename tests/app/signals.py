#!/usr/bin/env python3
"""B144: how the program ends: signals while it loads, answers or waits, clients and readers that are gone, a port that is taken."""
import json
import os
import signal
import socket
import subprocess
import time

import harness
from serving import Server

# Long enough to be interrupted, which takes a model that can go on: the small one's context is over in a moment.
LONG = {"prompt": "Once upon a time", "max_tokens": 4000, "ignore_eos": True, "temperature": 0}


def smollm2():
    return harness.need(harness.SMOLLM2, "SmolLM2")


def while_loading():
    for number in (signal.SIGTERM, signal.SIGINT):
        with Server(smollm2(), ready=False) as server:
            code, seconds = server.end(number)
            assert code == 0 and seconds < 5, (code, seconds, server.log)


def while_idle():
    with harness.scratch() as folder:
        for number in (signal.SIGTERM, signal.SIGINT):
            with Server(harness.tiny(folder)) as server:
                code, seconds = server.end(number)
                assert code == 0 and seconds < 5, (code, seconds, server.log)


def while_streaming():
    with Server(smollm2(), "--set", "server.drain_timeout=1s") as server, server.stream(LONG) as answer:
        assert answer.readline().startswith(b"data: {")
        server.process.send_signal(signal.SIGTERM)
        lines = [line for line in answer.read().decode().split("\n") if line]
        # The stream ends as a stream does: whole events, the last one says that it is the end.
        for line in lines[:-1]:
            json.loads(line.removeprefix("data: "))
        assert lines[-1] == "data: [DONE]" or "error" in json.loads(lines[-1].removeprefix("data: ")), lines[-3:]
        code, _ = server.end(0)
        assert code == 0, (code, server.log)


def twice():
    with Server(smollm2()) as server, server.stream(LONG) as answer:
        answer.readline()
        server.process.send_signal(signal.SIGTERM)
        server.read_until("draining")
        code, seconds = server.end(signal.SIGTERM)
        assert code == 128 + signal.SIGTERM and seconds < 2, (code, seconds, server.log)


def client_gone():
    with Server(smollm2()) as server:
        host, port = server.base.removeprefix("http://").split(":")
        body = json.dumps({**LONG, "stream": True}).encode()
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            client.recv(100)
        answer = json.loads(server.ask("/v1/completions", {"prompt": "a", "max_tokens": 2}))
        assert answer["usage"]["completion_tokens"] == 2, answer
        assert server.end()[0] == 0


def port_taken():
    with socket.create_server(("127.0.0.1", 0)) as other, harness.scratch() as folder:
        port = other.getsockname()[1]
        done = harness.mekik("serve", harness.tiny(folder), "--set", f'server.listen=["tcp://127.0.0.1:{port}"]')
        assert done.returncode == 1 and f"cannot listen on tcp://127.0.0.1:{port}" in done.stderr, done
        assert "memory plan" not in done.stderr, "the model was opened before the port was known to be free"


def interrupted_run():
    words = [harness.PROGRAM, "run", smollm2(), "--raw", "-p", "Once upon a time", "--ignore-eos", "--max-tokens", "4000"]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.environment())
    run.stdout.read(20)
    run.send_signal(signal.SIGINT)
    start = time.monotonic()
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130 and out.endswith(b"\n") and err == b"" and time.monotonic() - start < 5, (run.returncode, err)


def reader_gone():
    words = [harness.PROGRAM, "run", smollm2(), "--raw", "-p", "Once upon a time", "--ignore-eos", "--max-tokens", "4000"]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.environment())
    run.stdout.read(20)
    run.stdout.close()
    run.wait(timeout=30)
    # As other programs end when `head` has seen enough.
    assert run.returncode == -signal.SIGPIPE and run.stderr.read() == b"", run.returncode
    run.stderr.close()


def full_disk():
    if not os.path.exists("/dev/full"):
        raise harness.Skip("there is no /dev/full")
    with harness.scratch() as folder, open("/dev/full", "w") as full:
        for words in (["run", harness.tiny(folder), "-p", "hi", "--max-tokens", "4"], ["plugins"], ["--version"]):
            done = subprocess.run([harness.PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, env=harness.environment())
            assert done.returncode == 1 and "standard output cannot be written" in done.stderr, (words, done)


def endless_input():
    with harness.scratch() as folder, open("/dev/zero", "rb") as zeros:
        for words in (["run", harness.tiny(folder)], ["tokenize", harness.tiny(folder)]):
            done = subprocess.run([harness.PROGRAM, *words], stdin=zeros, capture_output=True, text=True, timeout=120, env=harness.environment())
            assert done.returncode == 1 and "standard input has more than 64 MiB" in done.stderr, (words, done)


CHECKS = [while_loading, while_idle, while_streaming, twice, client_gone, port_taken, interrupted_run, reader_gone, full_disk, endless_input]
harness.main([(check.__name__, check) for check in CHECKS])
