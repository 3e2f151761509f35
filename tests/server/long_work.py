"""What takes long for one client does not hold up others: texts that cannot fit are refused before they are tokenized, long bodies have
threads of their own, and what a client that has left asked for is dropped while it waits."""
import socket
import subprocess
import threading
import time

from harness import main, post
from real import MODEL, NAME, PROGRAM, Mekik, need_model

need_model()
RERANK, CHAT = "/v1/rerank", "/v1/chat/completions"
FORM = "Q: {query}\\nD: {document}\\nA:"
RANKS = '"\ntask = "score"\nscore_tokens = ["no", "yes"]\npair_template = "' + FORM + '"\npage = "llama'


def timed(work):
    begin = time.monotonic()
    out = work()
    return out, time.monotonic() - begin


def together(works):
    """Runs them at once and gives what they return, when all are done."""
    out = [None] * len(works)

    def run(i):
        out[i] = works[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    for thread in threads:
        thread.start()
    return threads, out


def those_who_left_are_forgotten():
    with Mekik(model=MODEL + RANKS) as server:
        body = {"query": "a " * 50, "documents": ["b " * 100] * 1000}

        def leave():
            sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            sock.sendall(post(RERANK, body))
            time.sleep(0.4)
            sock.close()

        threads, _ = together([leave] * 50)
        for thread in threads:
            thread.join()
        ask = lambda: server.request("POST", RERANK, {"query": "sky", "documents": ["blue", "red"]})
        (status, headers, text), seconds = timed(ask)
        if status == 429:  # the last of them are let go of when the step in progress ends
            time.sleep(int(headers["Retry-After"]))
            (status, _, text), seconds = timed(ask)
        assert status == 200, (status, text)
        assert seconds < 3, seconds
        server.wait_until_idle()


def a_text_that_cannot_fit_is_not_tokenized():
    with Mekik() as server:
        for path, body in ((CHAT, {"messages": [{"role": "user", "content": "x" * 1_000_000}]}),
                           ("/v1/completions", {"prompt": "x" * 1_000_000})):
            message, seconds = timed(lambda: server.refused(path, {"model": NAME, **body}, code="context_length_exceeded"))
            assert "at least" in message and seconds < 1.5, (message, seconds)


def nor_is_it_by_the_command_line():
    for words in (["embed", MODEL, "--pooling", "mean"], ["run", MODEL, "--raw"], ["run", MODEL]):
        done, seconds = timed(lambda: subprocess.run([PROGRAM, *words], input=b"x" * 8_000_000, capture_output=True))
        assert done.returncode == 1 and b"the text has at least" in done.stderr, done
        assert seconds < 1.5, seconds


def long_texts_leave_room_for_short_ones():
    with Mekik() as server:
        threads, sizes = together([lambda: server.post("/tokenize", {"prompt": "x" * 4_000_000})["count"]] * 4)
        worst = 0
        while any(thread.is_alive() for thread in threads):
            worst = max(worst, timed(lambda: server.chat("Hi", max_tokens=1))[1])
            time.sleep(0.05)
        assert len(set(sizes)) == 1 and sizes[0] > 0, sizes
        assert worst < 2.5, worst


main([those_who_left_are_forgotten, a_text_that_cannot_fit_is_not_tokenized, nor_is_it_by_the_command_line,
      long_texts_leave_room_for_short_ones])
