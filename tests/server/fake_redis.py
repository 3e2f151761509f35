"""A Redis server that does what a test says: as it should, late, never, or wrongly. Standard library only."""
import socket
import threading
import time


class FakeRedis:
    """`fault`: None, or the name of one of the faults below. Values live as long as the object."""

    def __init__(self, fault=None):
        self.fault, self.values, self.commands, self.open = fault, {}, [], set()
        self.lock = threading.Lock()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"redis://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open.add(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def stop(self):
        self.socket.close()
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve(self, connection):
        file = connection.makefile("rb")
        try:
            while line := file.readline():
                words = []
                for _ in range(int(line[1:])):
                    size = int(file.readline()[1:])
                    words.append(file.read(size))
                    file.read(2)
                reply = self.reply(words)
                with self.lock:
                    self.commands.append(words[0].decode())
                self.send(connection, words, reply)
        except (OSError, ValueError):
            pass
        finally:
            self.open.discard(connection)
            connection.close()

    def reply(self, words):
        name, *rest = words
        with self.lock:
            if name in (b"AUTH", b"SELECT"):
                return b"+OK\r\n"
            if name == b"STRLEN":
                return b":%d\r\n" % len(self.values.get(rest[0], b""))
            if name == b"PEXPIRE":
                return b":%d\r\n" % (rest[0] in self.values)
            if name == b"DEL":
                return b":%d\r\n" % (self.values.pop(rest[0], None) is not None)
            if name == b"GET":
                value = self.values.get(rest[0])
                return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)
            if name in (b"SET", b"PSETEX"):
                self.values[rest[0]] = rest[-1]
                return b"+OK\r\n"
        return b"-ERR unknown command\r\n"

    def send(self, connection, words, reply):
        fault, name = self.fault, words[0]
        if fault is None:
            connection.sendall(reply)
        elif fault == "late":
            time.sleep(3)
            connection.sendall(reply)
        elif fault == "mute":
            pass
        elif fault == "garbage":
            connection.sendall(bytes((i * 37 + 11) % 256 for i in range(3000)))
        elif fault == "error":
            connection.sendall(b"-ERR something is wrong with \x1b[31mthis server\r\n")
        elif fault == "no_auth":
            connection.sendall(b"-NOAUTH Authentication required.\r\n")
        elif fault == "list":
            connection.sendall(b"*1000000000\r\n")
        elif fault == "huge":
            connection.sendall(b"$99999999999\r\n" + bytes(1 << 20))
        elif name in (b"AUTH", b"SELECT"):
            connection.sendall(reply)
        elif fault == "full":
            written = name in (b"SET", b"PSETEX")
            connection.sendall(b"-OOM command not allowed when used memory > 'maxmemory'.\r\n" if written else reply)
        elif fault == "read_only":
            connection.sendall(b"-READONLY You can't write against a read only replica.\r\n" if name in (b"SET", b"PSETEX") else reply)
        elif fault == "wrong_type":
            connection.sendall(b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
        elif fault == "close":
            connection.shutdown(socket.SHUT_RDWR)
        elif name != b"GET" or reply == b"$-1\r\n":
            connection.sendall(reply)
        elif fault == "half":
            connection.sendall(reply[:len(reply) // 2])
            connection.shutdown(socket.SHUT_RDWR)
        elif fault == "stalled":
            connection.sendall(reply[:len(reply) // 2])
        elif fault == "drip":
            for byte in reply:
                connection.sendall(bytes([byte]))
                time.sleep(0.05)
        elif fault == "short":
            connection.sendall(b"$10\r\n0123456789\r\n")
        elif fault == "gone":
            connection.sendall(b"$-1\r\n")
        elif fault == "damaged":
            at = len(reply) * 2 // 3
            connection.sendall(reply[:at] + bytes([reply[at] ^ 4]) + reply[at + 1:])
        elif fault == "long":
            connection.sendall(b"$%d\r\n" % (len(reply) * 4) + reply * 4 + b"\r\n")
        else:
            raise AssertionError(fault)
