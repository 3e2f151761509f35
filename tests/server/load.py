"""32 streaming clients send 200 requests to the real engine; every third leaves midway. Every other answer is complete and equal to the
same request alone, to the bit, although the cache is so small that sequences lose their blocks and start again; nothing is left over."""
import json
import queue
import random
import socket
import threading
import time

from harness import main, post
from real import NAME, Mekik, chunks_of, need_model

need_model()
CLIENTS, REQUESTS = 32, 200
LONG = "Once upon a time there was a small weaver who had a loom, a shuttle and a cat. " * 6


def requests():
    """Distinct ones; each is greedy or has a seed."""
    ask = lambda text, **fields: ("/v1/chat/completions", {"model": NAME, "messages": [{"role": "user", "content": text}], **fields})
    go_on = lambda text, **fields: ("/v1/completions", {"model": NAME, "prompt": text, **fields})
    return [
        ask("Why is the sky blue?", temperature=0, max_tokens=24),
        ask("Name three colours.", temperature=0.8, seed=1, max_tokens=24, n=2),
        ask("Tell me about " + LONG, temperature=0, max_tokens=20, logprobs=True, top_logprobs=3),
        ask("Count to ten.", temperature=1.3, seed=-7, top_k=40, top_p=0.9, max_tokens=30, logprobs=True),
        ask("Write a poem about snow.", temperature=0, frequency_penalty=1.5, presence_penalty=0.5, max_tokens=32),
        ask("Say yes.", temperature=0, repetition_penalty=1.3, max_tokens=16, n=2, logprobs=True, top_logprobs=1),
        ask("What is a loom?", temperature=0, max_tokens=32, stop=[" is", "weav"]),
        ask("What is a shuttle? " + LONG, temperature=0.9, min_p=0.1, seed=2**63 - 1, max_tokens=12, n=3),
        go_on("1, 2, 3, 4,", temperature=0, max_tokens=24, stop=["9, 1", "11"]),
        go_on("The capital of France is", temperature=0, max_tokens=12, logprobs=5, echo=True),
        go_on([LONG, "Il y avait"], temperature=0.7, seed=3, max_tokens=10, n=2, logprobs=1),
        go_on("def fibonacci(n):\n", temperature=0, max_tokens=40, stop="\n\n", logit_bias={"30": -5}),
        go_on([28, 198, 540], temperature=0, max_tokens=8, ignore_eos=True, skip_special_tokens=False, logprobs=2),
        go_on("x", temperature=2, top_k=500, repeat_last_n=8, repetition_penalty=1.1, seed=11, max_tokens=48),
    ]


def answer_of(chunks):
    """What must not depend on who else is there: per choice the text, scores and reason; the usage, but for the tokens that came out of
    blocks of others."""
    choices, usage = {}, None
    for chunk in chunks:
        assert "error" not in chunk, chunk
        if chunk.get("usage"):
            usage = {key: value for key, value in chunk["usage"].items() if key != "prompt_tokens_details"}
        for choice in chunk["choices"]:
            of = choices.setdefault(choice["index"], {"text": "", "scores": [], "reason": None})
            assert of["reason"] is None, "something follows the finish_reason"
            of["text"] += choice.get("text") or choice.get("delta", {}).get("content") or ""
            of["reason"] = choice["finish_reason"]
            if choice.get("logprobs"):
                scores = choice["logprobs"]
                of["scores"] += scores["content"] if "content" in scores else list(zip(*scores.values()))
    assert all(of["reason"] in ("stop", "length") for of in choices.values()), choices
    assert usage is not None
    return choices, usage


def whole_of(path, answer):
    """The same from an answer that was not streamed."""
    choice = lambda c: {**c, "delta": c["message"]} if "message" in c else c
    return answer_of([{**answer, "choices": [choice(c) for c in answer["choices"]]}])


def send(server, path, body):
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    sock.sendall(post(path, body, "Connection: close\r\n"))
    return sock


def leave_midway(server, path, body, chance):
    """Closes the connection: at once, while the prompt is computed, or after some bytes of the answer."""
    sock = send(server, path, body)
    for _ in range(chance.choice([0, 0, 1, 2, 3])):
        if not sock.recv(chance.choice([100, 400])):
            break
    if chance.random() < 0.3:
        time.sleep(chance.random() * 0.2)
    sock.close()


def stay(server, path, body):
    sock = send(server, path, body)
    data = b""
    while part := sock.recv(65536):
        data += part
    sock.close()
    head, rest = data.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 200 "), data[:400]
    text = b""
    while True:
        size, rest = rest.split(b"\r\n", 1)
        size = int(size, 16)
        if size == 0:
            break
        text, rest = text + rest[:size], rest[size + 2 :]
    assert rest == b"\r\n", rest
    return answer_of(chunks_of(text))


def storm(server, jobs, alone):
    """Runs the jobs (number of the request, whether the client leaves) on 32 threads; what went wrong."""
    todo, faults = queue.Queue(), []
    for job in jobs:
        todo.put(job)

    def client(seed):
        chance = random.Random(seed)
        while True:
            try:
                number, leaves = todo.get_nowait()
            except queue.Empty:
                return
            path, body = requests()[number]
            body = dict(body, stream=True, stream_options={"include_usage": True})
            try:
                if leaves:
                    leave_midway(server, path, body, chance)
                elif (got := stay(server, path, body)) != alone[number]:
                    faults.append(f"request {number}: {json.dumps(got)[:600]} instead of {json.dumps(alone[number])[:600]}")
            except Exception as error:
                faults.append(f"request {number}: {error!r}")

    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


def a_storm_changes_no_answer_and_leaks_nothing():
    kinds = requests()
    # 16 blocks of 32 tokens hold a few sequences only; steps of 48 tokens cut the long prompts.
    with Mekik(memory="12MiB", max_batch_tokens=48, max_sequences=24) as server:
        alone = []
        for path, body in kinds:
            streamed = answer_of(server.stream(path, dict(body, stream_options={"include_usage": True})))
            assert whole_of(path, server.post(path, body)) == streamed, path
            alone.append(streamed)
            server.wait_until_idle()
        chance = random.Random(7)
        jobs = [(i % len(kinds), i % 3 == 2) for i in range(REQUESTS)]
        chance.shuffle(jobs)
        start = time.monotonic()
        faults = storm(server, jobs, alone)
        print(f"{REQUESTS} requests in {time.monotonic() - start:.1f} s, {server.metric('mekik_num_preemptions_total'):.0f} preemptions")
        assert not faults, f"{len(faults)} of {REQUESTS}:\n" + "\n".join(faults[:10])
        server.wait_until_idle()
        assert server.metric("mekik_num_preemptions_total") > 0, "the cache was not small enough to test anything"
        assert server.metric("mekik_requests_finished_total", reason="cancelled") > 0
        assert server.metric("mekik_requests_finished_total", reason="error") == 0
        assert answer_of(server.stream(kinds[0][0], dict(kinds[0][1], stream_options={"include_usage": True}))) == alone[0]


main([a_storm_changes_no_answer_and_leaks_nothing])
