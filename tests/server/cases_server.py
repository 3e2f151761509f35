"""Cases from the field about the server's security and about its metrics, each as its row says, on the real server and model."""
import json
import os
import re
import socket
import tempfile
import time

from harness import Stream, ask, get, main, post, read_until_closed, send_until_closed, wait_for
from real import MODEL, NAME, Mekik, need_model

need_model()
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
SHORT = {"model": NAME, "prompt": "Hi", "max_tokens": 2, "temperature": 0}
server = Mekik("--set", 'server.max_body="6MiB"')
Mekik.connect = lambda self, timeout=60: socket.create_connection(("127.0.0.1", self.port), timeout=timeout)


def error_of(reply, status, code=None):
    """The reply is a well-formed error of this status."""
    assert reply.status == status, (reply.status, reply.body[:300])
    error = reply.json["error"]
    assert set(error) == {"message", "type", "param", "code", "request_id"} and (code is None or error["code"] == code), error
    assert error["request_id"] == reply.headers["x-request-id"]
    return error


def finished(of=None):
    return (of or server).metric("mekik_requests_finished_total")


def B122():
    """The API key."""
    with Mekik("--set", 'server.api_key="sk-test"') as locked:
        status = lambda *headers, path="/v1/models": ask(locked, get(path, "".join(h + "\r\n" for h in headers))).status
        for key, wanted in [("Bearer sk-test", 200), ("bearer sk-test", 200), ("Bearer sk-tes", 401), ("Bearer sk-testx", 401), ("Bearer ", 401),
                            ("Bearer", 401), ("Basic sk-test", 401), ("sk-test", 401), ("Bearer sk-test sk-test", 401), ("Bearer SK-TEST", 401)]:
            assert status("Authorization: " + key) == wanted, key
        error_of(ask(locked, get("/v1/models")), 401, "invalid_api_key")
        assert status(path="/v1/models?api_key=sk-test") == 401 and status("X-Api-Key: sk-test") == 401
        assert status("Authorization: Bearer sk-test", "Authorization: Bearer sk-test") == 400
        assert status("Authorization: Bearer sk-test", "Authorization: Bearer wrong") == 400
        for path in (CHAT, TEXT, "/tokenize", "/detokenize"):
            assert ask(locked, post(path, SHORT)).status == 401
        assert status(path="/metrics") == 401 and status(path="/health/live") == 200 and status(path="/health/ready") == 200
        assert ask(locked, post(TEXT, SHORT, "Authorization: Bearer sk-test\r\n")).status == 200
        assert "sk-test" not in locked.log
    with Mekik("--set", 'server.api_keys=["one", "one"]', wait=False) as twice:
        assert twice.end() == 2 and "'api_keys' has a key twice" in twice.log and '"one"' not in twice.log, twice.log
    with Mekik("--set", 'server.api_key=""', wait=False) as keyless:
        assert keyless.end() == 2 and "api_key" in keyless.log


def B124():
    """Paths that lead out."""
    for path in ("/static/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..\\..\\etc\\passwd", "/etc/passwd%00.html",
                 "/v1/models/../../etc/passwd", "/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "//etc/passwd"):
        reply = ask(server, get(path))
        error_of(reply, reply.status)
        assert reply.status in (400, 404) and b"root:" not in reply.body and b"etc" not in reply.body, (path, reply.body)
    for name in ("../../etc/passwd", MODEL, ""):
        reply = ask(server, post(TEXT, dict(SHORT, model=name)))
        error_of(reply, 404, "model_not_found")
        assert b"etc" not in reply.body and b".gguf" not in reply.body, reply.body


def descriptors(of):
    return len(os.listdir(f"/proc/{of.process.pid}/fd"))


def B126():
    """Slow senders."""
    with Mekik("--set", 'server.header_timeout="2s"', "--set", 'server.body_timeout="3s"') as patient:
        before, slow = descriptors(patient), []
        for _ in range(200):
            slow.append(patient.connect())
            slow[-1].sendall(b"GET / HT")
        for _ in range(50):
            slow.append(patient.connect())
            slow[-1].sendall(b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n")
        assert descriptors(patient) <= before + 250
        for step in range(4):  # a byte now and then does not buy more time
            start = time.monotonic()
            assert ask(patient, post(TEXT, SHORT)).status == 200 and time.monotonic() - start < 1
            for sock in slow:
                try:
                    sock.sendall(b" " if step else b"T")
                except (BrokenPipeError, ConnectionResetError):
                    pass
            time.sleep(0.5)
        for sock in slow:
            assert b" 408 " in read_until_closed(sock)
            sock.close()
        assert wait_for(lambda: descriptors(patient) <= before + 1), (before, descriptors(patient))


def B128():
    """Two ways to see where a request ends."""
    hidden = post(TEXT, SHORT).decode()
    ran = finished()
    for head in ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 0\r\nContent-Length: 99\r\n", "Content-Length: +5\r\n",
                 "Content-Length: 5, 5\r\n", "Content-Length: -1\r\n", "Content-Length: 0x5\r\n", "Content-Length:\r\n", "Transfer-Encoding: xchunked\r\n",
                 "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding : chunked\r\n", "X: a\r\n folded\r\n", "X: a\rb\r\n", "X: a\nY: b\r\n",
                 "Content-Length: 5\r\nTransfer-Encoding:\tchunked\r\n", "\0X: a\r\n"):
        with server.connect() as sock:
            sock.sendall(("POST /v1/completions HTTP/1.1\r\nHost: t\r\n" + head + "\r\n0\r\n\r\n" + hidden).encode())
            answer = read_until_closed(sock)
            assert answer.count(b"HTTP/1.1 ") == 1 and answer[9:12] in (b"400", b"501") and b"connection: close" in answer.lower(), (head, answer)
    # A request inside a body is a body.
    assert ask(server, post(TEXT, hidden.encode())).status == 400
    assert finished() == ran


def B130():
    """Bodies without end."""
    for raw, status in [
        (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 10000000000\r\n\r\n" + b"x" * 1024, 413),
        (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 10000000000\r\n\r\n", 413),
        (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n700000\r\n" + b"x" * 0x700000, 413),
        (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + b"\x1f\x8b" * 10, 415),
    ]:
        with server.connect() as sock:
            answer = send_until_closed(sock, raw)
            assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]  # and no 100 before
    with server.connect() as sock:
        body = json.dumps(SHORT).encode()
        sock.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        stream = Stream(sock)
        assert stream.reply().status == 100
        sock.sendall(body)
        assert stream.reply().status == 200


def B131():
    """Deep and huge JSON."""
    wrap = lambda inside: b'{"prompt":"x","max_tokens":1,' + inside + b"}"
    for depth in (3000, 100000, 5000000):
        for body in (b"[" * depth, wrap(b'"metadata":' + b"[" * depth), wrap(b'"logit_bias":' + b'{"a":' * (depth // 5)),
                     wrap(b'"tools":[{"type":"function","function":{"name":"f","parameters":' + b'{"a":' * (depth // 5))):
            start = time.monotonic()
            error_of(ask(server, post(TEXT, body)), 400, "invalid_json")
            assert time.monotonic() - start < 3
    for body in (wrap(b'"temperature":' + b"1" * (1 << 20)), wrap(b'"n":' + b"9" * (1 << 20)), wrap(b",".join(b'"a":1' for _ in range(200000)))):
        start = time.monotonic()
        error_of(ask(server, post(TEXT, body)), 400)
        assert time.monotonic() - start < 3
    assert ask(server, post(TEXT, SHORT)).status == 200


def B133():
    """Bytes that are no UTF-8."""
    for body in (b'{"prompt":"\xff\xfe"}', b'{"prompt":"\xc0\x80"}', b'{"prompt":"\xed\xa0\x80"}', b'{"prompt":"\xf5\x80\x80\x80"}', b'{"prompt":"x","stop":"\xff"}',
                 b'{"prompt":"x","\xff":1}', b'{"messages":[{"role":"user","content":"x","name":"\xff"}]}'):
        for path in (TEXT, CHAT, "/tokenize"):
            error_of(ask(server, post(path, body)), 400, "invalid_json")
    for body in (b'{"prompt":"\\ud800","max_tokens":1}', b'{"prompt":"\\udc00\\ud800","max_tokens":1}'):
        reply = ask(server, post(TEXT, body))
        assert reply.status in (200, 400) and reply.json
    error_of(ask(server, b"GET /\xff\xfe HTTP/1.1\r\nHost: t\r\n\r\n"), 400)
    error_of(ask(server, get("/%ff%fe")), 400)
    reply = ask(server, b"GET /v1/models HTTP/1.1\r\nHost: t\r\nX-Request-Id: \xff\xfe\r\nX: \xff\r\n\r\n")
    assert reply.status == 200 and reply.headers["x-request-id"].startswith("req-")
    error_of(ask(server, post(TEXT, SHORT, "Content-Type: \u00ff\r\n")), 415)
    # A model that makes half a character: the answer is JSON all the same.
    half = ask(server, post(TEXT, dict(SHORT, logit_bias={"10813": 100}, logprobs=2, max_tokens=3))).json["choices"][0]
    assert half["text"] == "\ufffd" * 3 and "".join(half["logprobs"]["tokens"]) == half["text"]


def B136():
    """What errors give away."""
    bodies = [(TEXT, dict(SHORT, model="nosuch")), (CHAT, {"messages": [{"role": "tool", "content": "x"}], "max_tokens": 1}), (TEXT, dict(SHORT, prompt=[10**9])),
              (CHAT, {"messages": [{"role": "user", "content": "x"}], "chat_template": "{{ 1/0 }}"}), (TEXT, b"{"), (TEXT, dict(SHORT, secret_field=1)),
              ("/detokenize", {"tokens": [-1]}), (TEXT, dict(SHORT, logit_bias={"x": 1})), ("/nosuch", {})]
    for path, body in bodies:
        reply = ask(server, post(path, body))
        if reply.status == 200:
            continue
        error_of(reply, reply.status)
        text = reply.body.decode()
        assert not re.search(r"/(tmp|home|usr|etc|root|build|core|work)\b|\.gguf|\.cpp|\.toml|0x[0-9a-f]{6}", text), text


def B137():
    """Clients that never read. They come by a Unix socket, whose buffer in the kernel is small."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        with Mekik("--set", 'server.stall_timeout="1s"', memory="128MiB", listen=f'["tcp://127.0.0.1:0", "unix:{path}"]') as strict:
            before, socks = descriptors(strict), []
            for i in range(20):
                socks.append(socket.socket(socket.AF_UNIX))
                socks[-1].connect(path)
                socks[-1].sendall(post(TEXT, {"model": NAME, "prompt": "x", "max_tokens": 2000, "ignore_eos": True, "stream": True, "logprobs": 20, "seed": i}))
            assert wait_for(lambda: strict.used_blocks()[1] > 0)
            for _ in range(3):
                assert strict.complete(max_tokens=4, ignore_eos=True)["usage"]["completion_tokens"] == 4
            start = time.monotonic()
            assert wait_for(lambda: strict.metric("mekik_requests_finished_total", reason="cancelled") == 20, 150), strict.metrics()
            print(f"stalled clients were cut off after {time.monotonic() - start:.0f} s, "
                  f"{strict.metric('mekik_generation_tokens_total') / 20:.0f} tokens each")
            strict.wait_until_idle()
            for sock in socks:
                sock.close()
            assert wait_for(lambda: descriptors(strict) <= before + 1)


def B148_B150():
    """Metrics of a fresh server: no NaN, counters at 0, names as Prometheus wants them."""
    with Mekik() as fresh:
        code, headers, text = fresh.request("GET", "/metrics")
        assert code == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8" and b"NaN" not in text
        values = fresh.metrics()  # parsed strictly
        kinds = dict(line.split(" ")[2:4] for line in text.decode().splitlines() if line.startswith("# TYPE "))
        for (name, labels), value in values.items():
            assert "library" in dict(labels) if name == "mekik_plugin_memory_bytes" else dict(labels)["model_name"] == NAME, (name, labels)
            if name not in ("mekik_kv_blocks", "mekik_kv_blocks_free", "mekik_plugin_memory_bytes"):
                assert value == 0, (name, labels, value)
        for name in ("mekik_generation_tokens_total", "mekik_prompt_tokens_total", "mekik_steps_total"):
            assert (name, (("model_name", NAME),)) in values, name
        for kind in ("swap", "recompute"):
            assert fresh.metric("mekik_num_preemptions_total", kind=kind) == 0
        for reason in ("stop", "length", "cancelled", "error"):
            assert fresh.metric("mekik_requests_finished_total", reason=reason) == 0
        for name, kind in kinds.items():
            assert re.fullmatch(r"mekik_[a-z0-9_]+", name) and (kind == "counter") == name.endswith("_total"), name
            assert not name.endswith(("_bucket", "_sum", "_count")) and not re.search("milli|micro|_ms|_ns|kilo|mega", name), name
            assert kind != "histogram" or name.endswith("_seconds"), name


def B152():
    """One time to first token a request."""
    name = "mekik_time_to_first_token_seconds"
    with Mekik() as counted:
        for _ in range(5):
            counted.stream(TEXT, SHORT)
        for _ in range(3):
            counted.complete(max_tokens=3)
        counted.complete(max_tokens=3, n=2, seed=1)
        with counted.connect() as sock:  # leaves before its first token
            sock.sendall(post(TEXT, {"model": NAME, "prompt": [(7 * i) % 40000 + 100 for i in range(2500)], "max_tokens": 5}))
            time.sleep(0.2)
        assert wait_for(lambda: counted.metric("mekik_requests_finished_total", reason="cancelled") == 1)
        values = counted.metrics()
        buckets = [(float(dict(labels)["le"]), value) for (series, labels), value in values.items() if series == name + "_bucket"]
        counts = [value for _, value in sorted(buckets)]
        assert counts == sorted(counts) and counts[-1] == counted.metric(name + "_count") == 9, counts
        assert sorted(buckets)[-1][0] == float("inf") and counted.metric(name + "_sum") > 0


def B154():
    """Counters count."""
    with Mekik() as counted:
        seen = []
        for _ in range(3):
            counted.complete(max_tokens=10, ignore_eos=True)
            seen.append((counted.metric("mekik_generation_tokens_total"), counted.metric("mekik_prompt_tokens_total")))
        prompt = seen[0][1]
        assert seen == [(10, prompt), (20, 2 * prompt), (30, 3 * prompt)] and prompt > 0, seen


def ends_well():
    server.wait_until_idle()
    assert server.stop() == 0, server.log


main([B122, B124, B126, B128, B130, B131, B133, B136, B137, B148_B150, B152, B154, ends_well])
