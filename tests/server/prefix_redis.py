"""The cache's tier in Redis: servers share what they computed, over TCP and a socket; and a Redis that is late, dead or answers garbage
costs nothing but the reuse. The first part needs a real one."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from fake_redis import FakeRedis
from harness import main
from real import Mekik, need_model

need_model()
TINY = os.path.abspath("tests/models/tiny/llama-plain")
PROMPT = [(7 * i + i // 9) % 70 + 5 for i in range(100)]
TEXT = "".join(f"In the year {1500 + i} the clock on tower number {i * 7} rang {i % 12} times, and nobody knew why. " for i in range(40))
# Debian's redis-tools has the server under another name, and unlike redis-server it starts none in the background.
SERVER = shutil.which("redis-server") or shutil.which("redis-check-rdb")
PASSWORD = "p4ss-w0rd of a test"


class Redis:
    """A real one, with `words` of its configuration."""

    def __init__(self, *words):
        self.folder = tempfile.TemporaryDirectory()
        self.words = words
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.path = os.path.join(self.folder.name, "redis.sock")
        self.address = f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--unixsocket", self.path, "--dir", self.folder.name,
                                         "--save", "", *self.words], executable=SERVER, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None, "redis-server does not start"
                time.sleep(0.02)

    def settled(self, db):
        """Waits until nothing more is written."""
        end, before = time.monotonic() + 60, 0
        while (size := int(subprocess.check_output(["redis-cli", "-p", str(self.port), "-n", str(db), "dbsize"]))) == 0 or size != before:
            assert time.monotonic() < end, "nothing is written"
            before = size
            time.sleep(0.5)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()


def tiny(address, keys="", **values):
    return Mekik(model=TINY, cache="prefix", block_tokens=8, cache_keys=f'redis = "{address}"\n{keys}', **values)


def ask(of, prompt=PROMPT):
    """What it answers, to the bit, and how much of the prompt it knew."""
    answer = of.post("/v1/completions", {"model": "smol", "prompt": prompt, "max_tokens": 6, "temperature": 0, "logprobs": 3,
                                         "ignore_eos": True})
    return answer["choices"][0]["logprobs"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def said(of, words="what it would have held is computed again"):
    return [line for line in of.log.split("\n") if words in line]


with Mekik(model=TINY) as plain:
    EXPECTED = ask(plain)[0]
    OTHERS = [[(t + k) % 70 + 5 for t in PROMPT] for k in range(4)]
    EXPECTED_OTHERS = [ask(plain, prompt)[0] for prompt in OTHERS]


def two_servers_share():
    with Redis() as redis, Mekik(cache="prefix", cache_keys=f'redis = "{redis.address}/3"') as one, \
            Mekik(cache="prefix", cache_keys=f'redis = "unix:{redis.path}?db=3"\nhost_memory = "64MiB"') as two:
        tokens = one.post("/tokenize", {"prompt": TEXT})["tokens"][:600]
        complete = lambda of: of.complete(tokens, max_tokens=6)
        first = complete(one)
        redis.settled(3)
        again = complete(two)
        assert again["choices"][0]["text"] == first["choices"][0]["text"]
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 500
        assert two.metric("mekik_cache_tier_values_read_total", tier="redis") > 10
        assert two.metric("mekik_cache_tier_errors_total") == 0 and not said(one) and not said(two)


def after_a_restart_and_in_the_nearest_tier():
    with Redis() as redis, tempfile.TemporaryDirectory() as folder:
        with tiny(redis.address) as one:
            assert ask(one) == (EXPECTED, 0)
        disk = f'disk = "{folder}/cache"'
        with tiny(redis.address, disk) as two:
            assert ask(two) == (EXPECTED, len(PROMPT) - 1)
            assert two.metric("mekik_cache_tier_values_read_total", tier="redis") > 0
        redis.kill()
        with tiny(redis.address, disk) as three:  # what came from there is in the directory, too
            assert ask(three) == (EXPECTED, len(PROMPT) - 1)
            assert three.metric("mekik_cache_tier_values_read_total", tier="disk") > 0


def passwords_and_prefixes():
    with Redis("--requirepass", PASSWORD) as redis, tempfile.TemporaryDirectory() as folder:
        right, wrong = (os.path.join(folder, name) for name in ("right", "wrong"))
        for path, text in ((right, PASSWORD + "\n"), (wrong, "another one")):
            with open(path, "w") as file:
                file.write(text)
        with tiny(redis.address, f'redis_password_file = "{right}"\nredis_ttl = "2h"') as one:
            assert ask(one) == (EXPECTED, 0)
        with tiny(redis.address, f'redis_password_file = "{right}"') as two:
            assert ask(two) == (EXPECTED, len(PROMPT) - 1)
        with tiny(redis.address, f'redis_password_file = "{right}"\nredis_prefix = "another:"') as three:
            assert ask(three) == (EXPECTED, 0)
        left = subprocess.run(["redis-cli", "-p", str(redis.port), "-a", PASSWORD, "--no-auth-warning", "--eval", "/dev/stdin"],
                              input="local k = redis.call('KEYS', 'mekik:*')[1]; return redis.call('TTL', k)", text=True, capture_output=True)
        assert 7000 < int(left.stdout) <= 86400, left
        for keys, words in ((f'redis_password_file = "{wrong}"', "WRONGPASS"), ("", "NOAUTH")):
            with tiny(redis.address, keys) as four:
                assert ask(four) == (EXPECTED, 0)
                assert ask(four) == (EXPECTED, len(PROMPT) - 1)
                assert len(said(four)) == 1 and words in said(four)[0], four.log
                assert "another one" not in four.log and PASSWORD not in four.log


def killed_in_the_middle():
    with Redis() as redis, tiny(redis.address) as one:
        wrong = []

        def client():
            for i in range(24):
                k = i % len(OTHERS)
                if ask(one, OTHERS[k])[0] != EXPECTED_OTHERS[k]:
                    wrong.append(k)

        threads = [threading.Thread(target=client) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            time.sleep(0.1)
            redis.kill()
            time.sleep(0.1)
            redis.start()
        for thread in threads:
            thread.join()
        assert not wrong and len(said(one)) <= 1, one.log


def a_full_server():
    with Redis("--maxmemory", "1", "--maxmemory-policy", "noeviction") as redis, tiny(redis.address) as one:
        for prompt, expected in zip(OTHERS * 2, EXPECTED_OTHERS * 2):
            assert ask(one, prompt)[0] == expected
        one.stop()
        assert len(said(one)) == 1 and "OOM" in said(one)[0], one.log


def faults():
    """Each is survived: the same answer, soon, and one line that says what is wrong."""
    good = FakeRedis()
    with tiny(good.address) as one:
        assert ask(one) == (EXPECTED, 0)
    with tiny(good.address) as two:
        assert ask(two) == (EXPECTED, len(PROMPT) - 1)
    words = dict(late="did not answer in time", mute="did not answer in time", garbage="no Redis reply", error="something is wrong with ?[31m",
                 no_auth="NOAUTH", list="no Redis reply", huge="more than was asked for", full="OOM", read_only="READONLY",
                 wrong_type="WRONGTYPE", close="closed the connection", half="closed the connection", stalled="did not answer in time",
                 drip="did not answer in time", damaged="gave a damaged value", long=None, short=None, gone=None)
    for fault, line in words.items():
        bad = FakeRedis(fault)
        bad.values = dict(good.values)
        if fault in ("full", "read_only"):
            bad.values = {}
        with tiny(bad.address) as one:
            began = time.monotonic()
            assert ask(one)[0] == EXPECTED, fault
            took = time.monotonic() - began
            assert took < 2.5, (fault, took)
            for prompt, expected in zip(OTHERS, EXPECTED_OTHERS):
                assert ask(one, prompt)[0] == expected, fault
            one.stop()
            if line is None:
                assert not said(one), (fault, one.log)
            else:
                assert len(said(one)) == 1 and line in said(one)[0], (fault, one.log)
                assert "\x1b" not in one.log
        bad.stop()
    good.stop()


def it_comes_back():
    fake = FakeRedis("mute")
    with tiny(fake.address, 'redis_timeout = "50ms"') as one:
        assert ask(one) == (EXPECTED, 0)
        assert one.metric("mekik_cache_tier_errors_total", tier="redis") > 0
        fake.fault = None
        end = time.monotonic() + 30
        k = 0
        while not fake.values:
            assert time.monotonic() < end
            assert ask(one, OTHERS[k % 4])[0] == EXPECTED_OTHERS[k % 4]
            ask(one, [(t * 3 + k) % 70 + 5 for t in PROMPT])
            k += 1
            time.sleep(0.1)
    fake.stop()


def nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for address in (f"redis://127.0.0.1:{port}", "unix:/nowhere/redis.sock"):
        with tiny(address) as one:
            assert ask(one) == (EXPECTED, 0)
            assert ask(one) == (EXPECTED, len(PROMPT) - 1)
            assert len(said(one)) == 1, one.log


def addresses_that_cannot_be_used():
    for keys, words in (('redis = "http://x"', "it is written redis://"), ('redis = "redis://x:99999"', "its port"),
                        ('redis = "redis://me:secret-word@x"', "a password does not belong into a pipeline"),
                        ('redis = "rediss://x"', "TLS"), ('redis_ttl = "2h"', "give redis, too"),
                        ('redis = "redis://x"\nredis_password_file = "/nowhere/file"', "cannot be read")):
        one = Mekik(model=TINY, cache="prefix", cache_keys=keys, wait=False)
        assert one.end() == 2 and words in one.log, (keys, one.log)
        assert "secret-word" not in one.log.split("\n")[0]


if not SERVER:
    print("     (not run: there is no Redis here; Debian: redis-tools)")
with_redis = [two_servers_share, after_a_restart_and_in_the_nearest_tier, passwords_and_prefixes, killed_in_the_middle, a_full_server]
main([*(with_redis if SERVER else []), faults, it_comes_back, nobody_there, addresses_that_cannot_be_used])
