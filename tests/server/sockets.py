"""The server over raw sockets: framing, limits, clients that leave or stall, shutdown. Standard library only."""
import json
import os
import socket
import tempfile
import time

from harness import Server, Stream, ask, get, main, post, read_until_closed, send_until_closed, wait_for

CHAT = {"model": "fake", "messages": [{"role": "user", "content": "hi"}]}


def aborted(server):
    return int(ask(server, get("/metrics")).body.split()[-1])


def prompt(text, **fields):
    return dict({"model": "fake", "prompt": text, "max_tokens": 2000}, **fields)


def health_before_and_after_loading():
    with Server("--not-ready") as server:
        assert ask(server, get("/health/live")).status == 200
        ready = ask(server, get("/health/ready"))
        assert ready.status == 503 and ready.json["status"] == "loading", ready.body
        refused = ask(server, post("/v1/chat/completions", CHAT))
        assert refused.status == 503 and "retry-after" in refused.headers
    with Server() as server:
        assert ask(server, get("/health/ready")).status == 200


def errors_have_one_shape():
    with Server() as server:
        for raw, status in [
            (get("/nothing"), 404),
            (get("/static/../../etc/passwd"), 404),
            (get("/..%2f..%2fetc/passwd"), 404),
            (get("/%2e%2e/etc"), 404),
            (get("/v1/models/../../etc/passwd"), 404),
            (get("/v1/chat/completions"), 405),
            (get("/v1/models?key=1"), 400),
            (get("/a", method="BREW"), 404),
            (post("/v1/models", {}), 405),
            (post("/v1/completions", b"{"), 400),
            (post("/v1/completions", prompt("FAIL")), 500),
            (post("/v1/completions", {"prompt": "x"}), 400),
            (post("/v1/completions", CHAT, "Content-Type: text/plain\r\n"), 415),
            (post("/v1/completions", CHAT, "Content-Encoding: gzip\r\n"), 415),
        ]:
            reply = ask(server, raw)
            assert reply.status == status, (raw, reply.status, reply.body)
            error = reply.json["error"]
            assert set(error) == {"message", "type", "param", "code", "request_id"}, error
            assert error["request_id"] == reply.headers["x-request-id"]
            assert b"etc" not in reply.body and b"secret" not in reply.body, reply.body
        assert ask(server, get("/v1/chat/completions")).headers["allow"] == "POST, OPTIONS"


def head_and_options():
    with Server() as server:
        whole, head = ask(server, get("/v1/models")), ask(server, get("/v1/models", method="HEAD"))
        assert head.status == 200 and head.headers["content-length"] == str(len(whole.body))
        options = ask(server, get("/v1/chat/completions", method="OPTIONS"))
        assert options.status == 204 and options.headers["allow"] == "POST, OPTIONS"
        assert ask(server, get("*", method="OPTIONS")).status == 204


def pipelined_requests_are_answered_in_order():
    with Server() as server, server.connect() as sock:
        sock.sendall(post("/v1/completions", prompt("FORCE(one)")) + post("/v1/completions", prompt("FORCE(two)", stream=True)) + get("/v1/models"))
        stream = Stream(sock)
        assert stream.reply().json["choices"][0]["text"] == "one"
        assert b'"text":"t"' in stream.reply().body
        assert stream.reply().json["object"] == "list"


def hidden_requests_do_not_run():
    hidden = get("/v1/models").decode()
    with Server() as server:
        for head in ["Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 0\r\nContent-Length: 99\r\n",
                     "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding : chunked\r\n", "X: a\r\n b\r\n", "X: a\rb\r\n"]:
            with server.connect() as sock:
                sock.sendall(("POST /v1/completions HTTP/1.1\r\nHost: t\r\n" + head + "\r\n0\r\n\r\n" + hidden).encode())
                answer = read_until_closed(sock)
                assert answer.count(b"HTTP/1.1 ") == 1 and answer[9:12] in (b"400", b"501"), answer


def server_sent_events():
    with Server() as server:
        reply = ask(server, post("/v1/chat/completions", dict(CHAT, stream=True, stream_options={"include_usage": True}, n=2)))
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["cache-control"] == "no-cache" and reply.headers["x-accel-buffering"] == "no"
        events = reply.body.decode().split("\n\n")
        assert events.pop() == "" and events[-1] == "data: [DONE]"
        assert all(e.startswith("data: ") and "\n" not in e for e in events)
        chunks = [json.loads(e[6:]) for e in events[:-1]]
        assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] > 0
        assert all(c["usage"] is None for c in chunks[:-1])
        for index in (0, 1):
            mine = [c["choices"][0] for c in chunks[:-1] if c["choices"][0]["index"] == index]
            assert mine[0]["delta"] == {"role": "assistant", "content": ""}
            assert [c["finish_reason"] for c in mine if c["finish_reason"]] == ["stop"] and mine[-1]["finish_reason"] == "stop"
        # HTTP/1.0 gets the events as they are and the end of the connection.
        with server.connect() as sock:
            sock.sendall(post("/v1/completions", prompt("FORCE(x)", stream=True), version="1.0"))
            head, body = read_until_closed(sock).split(b"\r\n\r\n", 1)
            assert b"chunked" not in head.lower() and body.startswith(b"data: {") and body.endswith(b"data: [DONE]\n\n"), body


def clients_that_leave():
    with Server() as server:
        before = aborted(server)
        states = [prompt("LONG"), prompt("LONG", stream=True), prompt("PREFILL LONG", stream=True), prompt("PREFILL LONG")]
        count = 0
        for _ in range(5):
            for body in states:
                sock = server.connect()
                sock.sendall(post("/v1/completions", body))
                time.sleep(0.05)
                sock.close()
                count += 1
        assert wait_for(lambda: aborted(server) - before == count), (aborted(server), before, count)
        # Queued behind four that run: leaving takes it out of the queue.
        running = [server.connect() for _ in range(4)]
        for sock in running:
            sock.sendall(post("/v1/completions", prompt("LONG", max_tokens=8000)))
        time.sleep(0.1)
        queued = server.connect()
        queued.sendall(post("/v1/completions", prompt("LONG")))
        time.sleep(0.1)
        before = aborted(server)
        queued.close()
        assert wait_for(lambda: aborted(server) == before + 1)
        for sock in running:
            sock.close()
        start = time.monotonic()
        assert ask(server, post("/v1/completions", prompt("FORCE(ok)"))).json["choices"][0]["text"] == "ok"
        assert time.monotonic() - start < 1


def full_queue():
    with Server() as server:
        socks = [server.connect() for _ in range(12)]
        for sock in socks:
            sock.sendall(post("/v1/completions", prompt("LONG", max_tokens=8000)))
        time.sleep(0.2)
        reply = ask(server, post("/v1/completions", prompt("x")))
        assert reply.status == 429 and reply.headers["retry-after"] == "1" and reply.json["error"]["type"] == "rate_limit_error"
        for sock in socks:
            sock.close()


def slow_senders():
    with Server("--fast-timeouts") as server:
        slow = []
        for _ in range(100):
            sock = server.connect()
            sock.sendall(b"GET / HT")
            slow.append(sock)
        body = server.connect()
        body.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n{")
        start = time.monotonic()
        assert ask(server, get("/health/live")).status == 200
        assert time.monotonic() - start < 1
        for sock in slow + [body]:
            answer = read_until_closed(sock)
            assert b" 408 " in answer, answer
            sock.close()
        idle = server.connect()
        assert read_until_closed(idle) == b""
        idle.close()


def clients_that_never_read():
    with Server("--fast-timeouts") as server:
        stalled = []
        for _ in range(3):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", server.port))
            # Many answers and scores: much more than the kernel's buffers take.
            sock.sendall(post("/v1/completions", prompt("LONG", max_tokens=6000, n=16, logprobs=20, stream=True)))
            stalled.append(sock)
        start = time.monotonic()
        assert ask(server, post("/v1/completions", prompt("FORCE(ok)"))).json["choices"][0]["text"] == "ok"
        assert time.monotonic() - start < 2
        assert wait_for(lambda: aborted(server) >= 3, 20), aborted(server)
        for sock in stalled:
            sock.close()


def limits():
    with Server("--small") as server:
        for raw, status in [
            (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 10000000000\r\n\r\n" + b"x" * 1024, b"413"),
            (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 10000000000\r\n\r\n", b"413"),
            (b"GET /" + b"a" * 10000 + b" HTTP/1.1\r\n\r\n", b"431"),
            (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" + b"x" * 0x200000, b"413"),
        ]:
            with server.connect() as sock:
                answer = send_until_closed(sock, raw)
                assert answer[9:12] == status, answer[:300]
        with server.connect() as sock:
            body = json.dumps(prompt("FORCE(x)")).encode()
            sock.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
            stream = Stream(sock)
            assert stream.reply().status == 100
            sock.sendall(body)
            assert stream.reply().status == 200
        many = [server.connect() for _ in range(64)]
        time.sleep(0.2)
        with server.connect() as sock:
            assert read_until_closed(sock).startswith(b"HTTP/1.1 503 ")
        for sock in many:
            sock.close()
        assert wait_for(lambda: ask(server, get("/health/live")).status == 200)


def api_key():
    with Server("--key", "sk-test") as server:
        for header, status in [("Bearer sk-test", 200), ("bearer sk-test", 200), ("Bearer sk-tes", 401), ("Bearer sk-testx", 401), ("Bearer ", 401)]:
            assert ask(server, get("/v1/models", f"Authorization: {header}\r\n")).status == status, header
        assert ask(server, get("/v1/models")).status == 401
        assert ask(server, get("/v1/models?key=sk-test")).status == 401
        assert ask(server, get("/metrics")).status == 401 and ask(server, get("/nothing")).status == 401
        assert ask(server, get("/health/live")).status == 200
        assert ask(server, get("/v1/models", "Authorization: Bearer sk-test\r\nAuthorization: Bearer sk-test\r\n")).status == 400


def unix_sockets():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(path)
        stale.close()
        with Server("--unix", path) as server:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(path)
                sock.sendall(post("/v1/completions", prompt("FORCE(hi)")))
                assert Stream(sock).reply().json["choices"][0]["text"] == "hi"
            try:
                Server("--unix", path)
                raise AssertionError("the live socket was taken over")
            except RuntimeError as error:
                assert "another program listens there" in str(error), error
            assert os.path.exists(path)
        assert not os.path.exists(path)
        with open(path, "w"):
            pass
        try:
            Server("--unix", path)
            raise AssertionError("a plain file was replaced")
        except RuntimeError as error:
            assert "is no socket" in str(error), error
        assert os.path.exists(path)


def shutdown_ends_streams():
    server = Server("--fast-timeouts")
    with server.connect() as sock, server.connect() as quick, server.connect() as idle:
        idle.sendall(get("/health/live"))
        Stream(idle).reply()
        sock.sendall(post("/v1/completions", prompt("LONG", max_tokens=8000, stream=True)))
        quick.sendall(post("/v1/completions", prompt("LONG", max_tokens=400)))
        # Both run at the same pace, so the second has about a hundred tokens to go, on slow machines, too.
        streamed = b""
        while streamed.count(b"data: ") < 300:
            streamed += sock.recv(65536)
        start = time.monotonic()
        assert server.stop() == 0, server.log
        assert time.monotonic() - start < 6
        answer = read_until_closed(sock)
        assert b'"error"' in answer and b"shutting_down" in answer and answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), answer[-300:]
        assert read_until_closed(quick).startswith(b"HTTP/1.1 200 ")
        assert read_until_closed(idle) == b""


main([health_before_and_after_loading, errors_have_one_shape, head_and_options, pipelined_requests_are_answered_in_order,
      hidden_requests_do_not_run, server_sent_events, clients_that_leave, full_queue, slow_senders, clients_that_never_read, limits,
      api_key, unix_sockets, shutdown_ends_streams])
