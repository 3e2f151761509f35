"""What both scripts share: the server under test, raw sockets, and a runner that reports every failed check by name."""
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback

BINARY = sys.argv[1] if len(sys.argv) > 1 else None


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([BINARY, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addresses = []
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
            self.addresses.append(line.strip())
        if not self.addresses:
            raise RuntimeError("the server did not start: " + self.process.stderr.read())
        self.port = int(self.addresses[0].rsplit(":", 1)[1])
        self.base = f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        self.process.stdout.close()
        self.log = self.process.stderr.read()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None and self.stop() != 0:
            raise RuntimeError("the server did not end well: " + self.log)

    def connect(self, timeout=10):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)


def send_until_closed(sock, raw):
    """What comes back for bytes that the server may stop reading."""
    try:
        sock.sendall(raw)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return read_until_closed(sock)


def read_until_closed(sock):
    data = b""
    try:
        while True:
            part = sock.recv(65536)
            if not part:
                break
            data += part
    except ConnectionResetError:
        pass
    return data


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Stream:
    """Reads replies off one connection."""

    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def more(self):
        part = self.sock.recv(65536)
        if not part:
            raise EOFError("the connection was closed")
        self.data += part

    def head(self):
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        return int(lines[0].split(" ")[1]), headers

    def reply(self, head_only=False):
        status, headers = self.head()
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while True:
                while b"\r\n" not in self.data:
                    self.more()
                size, self.data = self.data.split(b"\r\n", 1)
                size = int(size, 16)
                while len(self.data) < size + 2:
                    self.more()
                body += self.data[:size]
                assert self.data[size : size + 2] == b"\r\n"
                self.data = self.data[size + 2 :]
                if size == 0:
                    break
        elif not head_only and status not in (204, 100):
            size = int(headers["content-length"])
            while len(self.data) < size:
                self.more()
            body, self.data = self.data[:size], self.data[size:]
        return Reply(status, headers, body)


def post(path, body, headers="", version="1.1"):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return f"POST {path} HTTP/{version}\r\nHost: t\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def get(path, headers="", method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: t\r\n{headers}\r\n".encode()


def ask(server, raw):
    with server.connect() as sock:
        sock.sendall(raw)
        return Stream(sock).reply(head_only=raw.startswith(b"HEAD"))


def wait_for(what, seconds=5.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def main(tests):
    failed = 0
    for test in tests:
        start = time.monotonic()
        try:
            test()
            print(f"ok   {test.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {test.__name__}", flush=True)
            traceback.print_exc()
    os._exit(1 if failed else 0)
