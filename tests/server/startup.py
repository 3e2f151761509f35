"""How the server starts and ends: what stands in its way is told in one line that says what to do, and the exit codes are those that
supervisors expect. On the real model."""
import os
import shutil
import signal
import socket
import tempfile
import time

from harness import Stream, get, main, post, read_until_closed, wait_for
from real import MODEL, NAME, Mekik, chunks_of, need_model

need_model()
LONG = {"model": NAME, "prompt": "Once upon a time", "max_tokens": 1500, "ignore_eos": True, "temperature": 0}


def said(server):
    """The one line that is not a line of the log."""
    lines = [line for line in server.log.splitlines() if line and not line.startswith(("20", "  "))]
    assert len(lines) == 1 and lines[0].startswith("mekik: "), server.log
    return lines[0]


def refused(code, *words, listen):
    """The server does not start: its exit code, and a line with these words. Nothing was loaded."""
    with Mekik(wait=False, listen='["' + '", "'.join(listen) + '"]') as server:
        got = server.end()
        text = server.log
        assert got == code, (got, text)
        for word in words:
            assert word in text, f"{word!r} is not in: {text}"
        assert "memory plan" not in text, "the model was loaded in vain: " + text
        if code == 1:
            said(server)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def two_pipelines_on_one_port():
    address = f'["tcp://127.0.0.1:{free_port()}"]'
    with Mekik(wait=False, listen=address, others=[dict(listen=address, name="other")]) as server:
        assert server.end() == 2, server.log
        line = said(server)
        assert "pipeline.toml and " in line and "other0.toml both listen on tcp://127.0.0.1:" in line and "another address" in line, line
        assert "memory plan" not in server.log
    # Written differently, the address is still one.
    port = free_port()
    with Mekik(wait=False, listen=f'["tcp://127.0.0.1:{port}", "tcp://localhost:{port}"]') as server:
        assert server.end() == 1, server.log
        assert "another program listens there" in said(server), server.log


def two_pipelines_on_ports_of_their_own():
    with Mekik(wait=False, others=[dict(name="other")]) as server:
        ports = [int(server.wait_for_log(name + r" is ready on tcp://127\.0\.0\.1:(\d+)")[1]) for name in ("smol", "other")]
        assert ports[0] != ports[1]
        for server.port, name in zip(ports, ("smol", "other")):
            assert server.post("/v1/completions", {"model": name, "prompt": "x", "max_tokens": 2})["model"] == name
        assert server.metric("mekik_requests_finished_total", model_name="smol") == 1


def port_in_use():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        refused(1, "cannot listen on tcp://127.0.0.1:", "another program listens there", "[server] listen",
                listen=[f"tcp://127.0.0.1:{sock.getsockname()[1]}"])


def hosts_that_are_not_here():
    refused(1, "tcp://192.0.2.1:0", "this machine does not have this address", listen=["tcp://192.0.2.1:0"])
    refused(1, "tcp://no-such-host.invalid:0", "is not known", listen=["tcp://no-such-host.invalid:0"])
    refused(2, "is not a port", listen=["tcp://127.0.0.1:70000"])


def unix_sockets():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        refused(2, "is too long for a socket", listen=["unix:" + folder + "/" + "x" * 108])
        refused(1, "its folder does not exist", listen=["unix:" + folder + "/none/s"])
        with open(path, "w"):
            pass
        refused(1, "is no socket", "choose another path", listen=["unix:" + path])
        os.unlink(path)
        # Left over from a process that was killed: taken over, and gone afterwards.
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        with Mekik(wait=False, listen=f'["unix:{path}"]') as server:
            server.wait_for_log("is ready on unix:")
            refused(1, "another program listens there", listen=["unix:" + path])
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(path)
                sock.sendall(get("/health/ready"))
                assert Stream(sock).reply().status == 200
            # Killed: the socket stays, and the next start takes it over.
            server.signal(signal.SIGKILL)
            server.end()
            assert os.path.exists(path)
            server.start([server.pipeline])
            server.wait_for_log("is ready on unix:")
            assert server.stop() == 0
        assert not os.path.exists(path)


def an_empty_key_is_refused():
    with Mekik("--set", 'server.api_key=""', wait=False) as server:
        assert server.end() == 2 and "api_key" in server.log, server.log


def while_loading(action, *words, **values):
    """Stops the process when it has said its plan, does something to it, and lets it go on."""
    server = Mekik(*words, wait=False, **values)
    server.wait_for_log("memory plan")
    server.signal(signal.SIGSTOP)
    action(server)
    server.signal(signal.SIGCONT)
    return server


def a_file_that_shrinks_or_goes_while_it_is_loaded():
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "model.gguf")
        shutil.copyfile(MODEL, copy)
        with while_loading(lambda _: os.truncate(copy, 1 << 20), model=copy) as server:
            assert server.end() == 1, server.log
            line = said(server)
            assert "weight \"" in line and "model.gguf: shrank while it was open" in line and line.count(copy) == 1, line
        shutil.copyfile(MODEL, copy)
        os.truncate(copy, 50_000_000)
        with Mekik(wait=False, model=copy) as server:
            assert server.end() == 1, server.log
            line = said(server)
            assert "50000000" in line and "98362432" in line and "truncated" in line and line.count(copy) == 1, line
        shutil.copyfile(MODEL, copy)
        # Deleted, the file lives on for those who have it open.
        with while_loading(lambda _: os.unlink(copy), model=copy) as server:
            server.wait_until_ready()
            assert server.complete(max_tokens=3)["usage"]["completion_tokens"] == 3
        with Mekik(wait=False, model=copy) as server:
            assert server.end() == 2 and "there is no file or folder " + copy in server.log, server.log


def a_file_that_goes_while_it_is_served():
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "model.gguf")
        shutil.copyfile(MODEL, copy)
        with Mekik(model=copy) as server:
            before = server.chat(max_tokens=8)["choices"]
            os.truncate(copy, 4096)
            assert server.chat(max_tokens=8)["choices"] == before
            os.unlink(copy)
            assert server.chat(max_tokens=8)["choices"] == before


def signals_while_loading():
    with tempfile.TemporaryDirectory() as folder:
        for which in (signal.SIGTERM, signal.SIGINT):
            path = os.path.join(folder, "s")
            with while_loading(lambda server: server.signal(which), listen=f'["unix:{path}"]') as server:
                assert server.end(5) == 0, server.log
                assert "stopped while loading" in server.log and "is ready" not in server.log, server.log
            assert not os.path.exists(path)


def signals_while_idle():
    for which in (signal.SIGTERM, signal.SIGINT):
        with Mekik() as server, socket.create_connection(("127.0.0.1", server.port)) as idle:
            idle.sendall(get("/health/live"))
            assert Stream(idle).reply().status == 200
            start = time.monotonic()
            server.signal(which)
            assert server.end() == 0 and time.monotonic() - start < 2, server.log
            assert read_until_closed(idle) == b""


def start_stream(server, body=LONG):
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    sock.sendall(post("/v1/completions", dict(body, stream=True)))
    stream = Stream(sock)
    while b"data: " not in stream.data:
        stream.more()
    return sock, stream


def refuses(server):
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
        return False
    except ConnectionRefusedError:
        return True


def draining_lets_streams_end():
    with Mekik() as server:
        sock, stream = start_stream(server, dict(LONG, max_tokens=100))
        server.signal()
        server.wait_for_log("draining; a second signal ends at once")
        assert wait_for(lambda: refuses(server), 2), "a draining server takes connections"
        chunks = chunks_of(stream.reply().body)
        assert chunks[-1]["choices"][0]["finish_reason"] == "length" and server.end() == 0, server.log
        sock.close()


def draining_ends_after_its_time():
    with Mekik("--set", 'server.drain_timeout="300ms"') as server:
        sock, stream = start_stream(server)
        start = time.monotonic()
        server.signal()
        body = stream.reply().body
        assert server.end() == 0 and time.monotonic() - start < 5, server.log
        assert chunks_of(body)[-1]["error"]["code"] == "shutting_down", body[-300:]
        sock.close()


def a_second_signal_ends_at_once():
    for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            with Mekik(listen=f'["tcp://127.0.0.1:0", "unix:{path}"]') as server:
                sock, _ = start_stream(server)
                server.signal(first)
                server.wait_for_log("draining")
                assert wait_for(lambda: not os.path.exists(path)), "the socket's file stays while the server drains"
                start = time.monotonic()
                server.signal(second)
                assert server.end() == 128 + second and time.monotonic() - start < 2, server.log
                sock.close()


def a_client_that_is_gone_does_not_end_the_server():
    with Mekik() as server:
        for _ in range(3):
            sock, _ = start_stream(server)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # RST: writing to it fails, or raises SIGPIPE
            sock.close()
        server.wait_until_idle()
        assert server.complete(max_tokens=2)["usage"]["completion_tokens"] == 2


main([two_pipelines_on_one_port, two_pipelines_on_ports_of_their_own, port_in_use, hosts_that_are_not_here, unix_sockets,
      an_empty_key_is_refused, a_file_that_shrinks_or_goes_while_it_is_loaded, a_file_that_goes_while_it_is_served, signals_while_loading,
      signals_while_idle, draining_lets_streams_end, draining_ends_after_its_time, a_second_signal_ends_at_once,
      a_client_that_is_gone_does_not_end_the_server])
