"""Cases from the field about the API's semantics and about batching, each as its row says, on the real server and model. A test is named by
the row's id; FORCE(x) of a row is done by the sampler `force`, BIAS(id) by logit_bias."""
import os
import socket
import threading
import time

from harness import Stream, main, post, read_until_closed, wait_for
from real import FORCE, NAME, Mekik, chunks_of, need_model

need_model()
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
HI = [{"role": "user", "content": "Hi"}]
server = Mekik(samplers=FORCE, memory="256MiB")


def ids(text, **fields):
    return server.post("/tokenize", {"prompt": text, "add_special_tokens": False, **fields})["tokens"]


def force(text):
    """Fields that make the model say the text and end."""
    return {"force": ",".join(map(str, ids(text) + ids("<|im_end|>"))), "max_tokens": 200, "temperature": 0}


def bias(token):
    return {"logit_bias": {str(token): 100}, "temperature": 0}


def chat(**fields):
    return server.post(CHAT, {"messages": HI, **fields})


def complete(**fields):
    return server.post(TEXT, {"prompt": "Hi", **fields})


def streamed(path, **fields):
    """(text, finish_reason, chunks) of a stream with one choice."""
    chunks = server.stream(path, {**({"messages": HI} if path == CHAT else {"prompt": "Hi"}), **fields})
    parts = [c["choices"][0] for c in chunks if c["choices"]]
    texts = [p["delta"].get("content") or "" if path == CHAT else p["text"] for p in parts]
    assert [p["finish_reason"] for p in parts[:-1]] == [None] * (len(parts) - 1)
    return "".join(texts), parts[-1]["finish_reason"], chunks


def said(**fields):
    """(text, finish_reason), which must be the same from both endpoints, streamed or whole."""
    answers = {streamed(path, **fields)[:2] for path in (CHAT, TEXT)}
    answers.add((lambda c: (c["message"]["content"], c["finish_reason"]))(chat(**fields)["choices"][0]))
    answers.add((lambda c: (c["text"], c["finish_reason"]))(complete(**fields)["choices"][0]))
    assert len(answers) == 1, answers
    return answers.pop()


def B20():
    """A model without a chat template is never given one silently."""
    base = os.path.abspath("models/gemma-3-270m-q4_k_m.gguf")
    if not os.path.exists(base):
        return print("B20 skipped: " + base + " is not there (scripts/get-gemma3.sh fetches it)")
    with Mekik(model=base) as bare:
        assert "no chat template" in bare.refused(CHAT, {"messages": HI}, code="no_chat_template")
        assert b'"chat_template":false' in bare.request("GET", "/v1/models")[2]
        assert bare.complete(max_tokens=2)["usage"]["completion_tokens"] <= 2


def B21():
    """Content as parts, or null."""
    parts = {"role": "user", "content": [{"type": "text", "text": "part A"}, {"type": "text", "text": "part B"}]}
    prompt = server.post("/detokenize", {"tokens": server.post("/tokenize", {"messages": [parts]})["tokens"]})["prompt"]
    assert "<|im_start|>user\npart Apart B<|im_end|>" in prompt, prompt
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    assert "image_url" in server.refused(CHAT, {"messages": [image]}, param="messages[0].content")


def B49():
    """Stop strings over several tokens."""
    text = "one two STOP four"
    for stop, shown in [(["STOP"], "one two "), (["two ST"], "one "), (["four", "two"], "one "), (["four" * 20], text), ("P f", "one two STO")]:
        assert said(**force(text), stop=stop) == (shown, "stop"), stop
    assert said(**{**force(text), "max_tokens": 3}, stop=["nowhere"])[1] == "length"


def B51():
    """Characters over several tokens."""
    assert [ids(t) for t in ("🦀", "歪", "ď", " 삼겹살")] == [[10813, 116, 218], [34978, 120], [143, 233], [18601, 220, 137, 181, 127, 134, 183, 220, 129]]
    assert said(**force("🦀歪ď 삼겹살")) == ("🦀歪ď 삼겹살", "stop")
    assert said(**bias(10813), max_tokens=3) == ("\ufffd" * 3, "length")
    assert chat(**bias(10813), max_tokens=3)["usage"]["completion_tokens"] == 3


def B54():
    """Chat logprobs."""
    for text in ("a🦀 plain text", "no"):
        for fields, wanted in [(dict(logprobs=True), 0), (dict(logprobs=True, top_logprobs=0), 0), (dict(logprobs=True, top_logprobs=5), 5)]:
            answer = chat(**force(text), **fields)
            items = answer["choices"][0]["logprobs"]["content"]
            assert bytes(b for item in items for b in item["bytes"]).decode() == answer["choices"][0]["message"]["content"] == text
            # One item per token of the text; the end token, which usage counts, is none.
            assert len(items) == len(ids(text)) == answer["usage"]["completion_tokens"] - 1
            for item in items:
                assert item["logprob"] < 0 and len(item["top_logprobs"]) == wanted
                scores = [top["logprob"] for top in item["top_logprobs"]]
                assert scores == sorted(scores, reverse=True)
                own = [top for top in item["top_logprobs"] if top["bytes"] == item["bytes"]]
                assert all(top["logprob"] == item["logprob"] for top in own)
            chunks = streamed(CHAT, **force(text), **fields)[2]
            assert [i for c in chunks for i in (c["choices"][0]["logprobs"] or {"content": []})["content"]] == items
    # Tokens of a stop string are not listed either, streamed or whole.
    fields = dict(force("one two STOP four"), stop="STOP")
    items = chat(**fields, logprobs=True)["choices"][0]["logprobs"]["content"]
    chunks = streamed(CHAT, **fields, logprobs=True)[2]
    assert [i for c in chunks for i in (c["choices"][0]["logprobs"] or {"content": []})["content"]] == items
    assert bytes(b for item in items for b in item["bytes"]) == b"one two ", items
    tokens = complete(**fields, logprobs=0)["choices"][0]["logprobs"]["tokens"]
    chunks = streamed(TEXT, **fields, logprobs=0)[2]
    assert [t for c in chunks for t in c["choices"][0]["logprobs"]["tokens"]] == tokens and "".join(tokens) == "one two "
    items = chat(**bias(10813), max_tokens=2, logprobs=True)["choices"][0]["logprobs"]["content"]
    assert [item["bytes"] for item in items] == [[240, 159]] * 2
    server.refused(CHAT, {"messages": HI, "logprobs": True, "top_logprobs": 21}, param="top_logprobs")
    server.refused(CHAT, {"messages": HI, "top_logprobs": 5}, param="top_logprobs")


def B56():
    """echo with logprobs."""
    prompt = "\n1. Carol has 20"
    for limit in (0, 2):
        fields = dict(prompt=prompt, max_tokens=limit, echo=True, logprobs=1, temperature=0)
        whole = complete(**fields)
        chunks = server.stream(TEXT, fields)
        text = "".join(c["choices"][0]["text"] for c in chunks)
        joined = {key: [v for c in chunks for v in c["choices"][0]["logprobs"][key]] for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}
        of = whole["choices"][0]
        assert (text, joined) == (of["text"], of["logprobs"])
        assert text == prompt if limit == 0 else text.startswith(prompt)
        assert "".join(joined["tokens"]) == text
        assert joined["token_logprobs"][0] is None and all(score < 0 for score in joined["token_logprobs"][1:])
        assert joined["text_offset"] == [len("".join(joined["tokens"][:i])) for i in range(len(joined["tokens"]))]
        usage = whole["usage"]
        assert len(joined["tokens"]) == usage["prompt_tokens"] + usage["completion_tokens"] and usage["completion_tokens"] == limit
        assert len(ids(prompt)) == usage["prompt_tokens"]
    # The end of a character that is cut off, and a stop that begins inside a token, leave the tokens equal to the text, too.
    for fields in (dict(bias(10813), max_tokens=3), dict(force("one two STOP four"), stop="wo ST"), dict(force("🦀x"), max_tokens=2)):
        of = complete(**fields, logprobs=1)["choices"][0]
        assert "".join(of["logprobs"]["tokens"]) == of["text"], of


def B57():
    """Several answers."""
    story = [{"role": "user", "content": "Tell me a story about a loom."}]
    one = chat(messages=story, temperature=1, seed=5, max_tokens=20)
    two = chat(messages=story, temperature=1, seed=5, max_tokens=20, n=2)
    texts = [c["message"]["content"] for c in two["choices"]]
    assert [c["index"] for c in two["choices"]] == [0, 1] and texts[0] != texts[1] and texts[0] == one["choices"][0]["message"]["content"]
    assert two["usage"]["prompt_tokens"] == one["usage"]["prompt_tokens"]
    assert two["usage"]["completion_tokens"] > one["usage"]["completion_tokens"]
    chunks = server.stream(CHAT, {"messages": story, "temperature": 1, "seed": 5, "max_tokens": 20, "n": 2})
    for index in (0, 1):
        mine = [c["choices"][0] for c in chunks if c["choices"][0]["index"] == index]
        assert "".join(c["delta"].get("content") or "" for c in mine) == texts[index]
        assert len([c for c in mine if c["finish_reason"]]) == 1 and mine[-1]["finish_reason"]
    for n in (0, 1000000, -1, 129):
        start = time.monotonic()
        server.refused(CHAT, {"messages": HI, "n": n}, param="n")
        assert time.monotonic() - start < 1


def B58():
    """The chunk with the usage."""
    for path in (CHAT, TEXT):
        body = {"messages": HI} if path == CHAT else {"prompt": "Hi"}
        body |= {"temperature": 0, "max_tokens": 5}
        chunks = server.stream(path, {**body, "stream_options": {"include_usage": True}})
        assert chunks[-1]["choices"] == [] and chunks[-1]["usage"] == server.post(path, body)["usage"]
        assert all(c["usage"] is None and c["choices"] for c in chunks[:-1]) and chunks[-2]["choices"][0]["finish_reason"]
        assert all("usage" not in c for c in server.stream(path, body))
        server.refused(path, {**body, "stream_options": {"include_usage": True}}, param="stream_options")


def B60():
    """Seeds."""
    # A prompt that may go on in many ways: to a greeting many seeds give the same answer.
    text = lambda **fields: complete(prompt="Once upon a time", temperature=1, max_tokens=64, ignore_eos=True, **fields)["choices"][0]["text"]
    seen = []
    for seed in (42, 43, 0, -1, 2**63 - 1):
        once, again = text(seed=seed), text(seed=seed)
        assert once == again, f"seed {seed}: {once!r} and {again!r}"
        seen.append(once)
    assert len(set(seen)) == len(seen), seen
    assert text() != text()
    server.refused(CHAT, {"messages": HI, "seed": 2**64}, param="seed")
    server.refused(CHAT, {"messages": HI, "seed": 1.5}, param="seed")


def leave(of, body, count, occupants=0):
    """`count` clients that send the body, and close the socket when all of them run or wait."""
    before = of.metric("mekik_requests_finished_total", reason="cancelled")
    socks = []
    for i in range(count):
        socks.append(socket.create_connection(("127.0.0.1", of.port)))
        socks[-1].sendall(post(TEXT, {"model": NAME, "max_tokens": 2000, "ignore_eos": True, "seed": i, **body}))
    assert wait_for(lambda: sum(of.used_blocks()[1:]) == occupants + count, 10), of.used_blocks()
    for sock in socks:
        sock.close()
    gone = lambda: of.metric("mekik_requests_finished_total", reason="cancelled") == before + count
    assert wait_for(gone, 3), (before, of.metric("mekik_requests_finished_total", reason="cancelled"))
    assert wait_for(lambda: of.used_blocks()[1:] == (occupants, 0), 1), of.used_blocks()


def B62():
    """Clients that leave: streaming, not streaming, in prefill, queued."""
    long_prompt = [(7 * i) % 40000 + 100 for i in range(2500)]
    for body in (dict(prompt="x", stream=True), dict(prompt="x"), dict(prompt=long_prompt, stream=True)):
        for _ in range(5):
            leave(server, body, 10)
            server.wait_until_idle(1)
    start = time.monotonic()
    complete(max_tokens=1)
    assert time.monotonic() - start < 1
    with Mekik("--set", "scheduler.max_sequences=2", memory="128MiB") as small:
        running = [socket.create_connection(("127.0.0.1", small.port)) for _ in range(2)]
        for sock in running:
            sock.sendall(post(TEXT, {"model": NAME, "prompt": "x", "max_tokens": 2000, "ignore_eos": True}))
        assert wait_for(lambda: small.used_blocks()[1] == 2)
        for _ in range(5):
            leave(small, dict(prompt="x", stream=True), 10, occupants=2)
        for sock in running:
            sock.close()
        small.wait_until_idle(1)


def B63():
    """Prompts at the end of the context."""
    with Mekik("--set", "model.context=128") as small:
        assert small.request("GET", "/v1/models")[2].count(b'"max_model_len":128') == 1
        tokens = lambda n: [(7 * i) % 40000 + 100 for i in range(n)]
        message = small.refused(TEXT, {"prompt": tokens(129), "max_tokens": 5}, code="context_length_exceeded")
        assert "128" in message and "129" in message, message
        small.refused(TEXT, {"prompt": tokens(128), "max_tokens": 5}, code="context_length_exceeded")
        message = small.refused(CHAT, {"messages": [{"role": "user", "content": "word " * 200}]}, code="context_length_exceeded")
        assert "128" in message
        answer = small.complete(prompt=tokens(100), max_tokens=1000, ignore_eos=True)
        assert answer["choices"][0]["finish_reason"] == "length" and answer["usage"]["completion_tokens"] == 28
        assert "28" in answer["warnings"][0] and "1000" in answer["warnings"][0]
        answer = small.complete(prompt=tokens(127), max_tokens=5, ignore_eos=True)
        assert answer["choices"][0]["finish_reason"] == "length" and answer["usage"]["completion_tokens"] == 1
        answer = small.chat(max_completion_tokens=1000, ignore_eos=True)
        assert answer["usage"]["total_tokens"] == 128 and answer["choices"][0]["finish_reason"] == "length"


def B66():
    """Stop strings that are special tokens; end tokens."""
    assert ids("<|im_start|>") == [1]
    assert said(**bias(1), stop=["<|im_start|>"], max_tokens=5) == ("", "stop")
    assert chat(**bias(1), stop=["<|im_start|>"], max_tokens=5)["usage"]["completion_tokens"] == 1
    assert said(**bias(1), max_tokens=5) == ("", "length")
    assert chat(**bias(1), max_tokens=5)["usage"]["completion_tokens"] == 5
    assert said(**bias(1), max_tokens=2, skip_special_tokens=False) == ("<|im_start|>" * 2, "length")
    # Each of several tokens that end an answer does.
    for token in (28, 540, 198):
        answer = complete(**bias(token), max_tokens=5, stop_token_ids=[28, 540, 198])
        assert answer["choices"][0]["finish_reason"] == "stop" and answer["choices"][0]["text"] == "" and answer["usage"]["completion_tokens"] == 1
    assert complete(**bias(2), max_tokens=3)["choices"][0]["finish_reason"] == "stop"
    assert complete(**bias(2), max_tokens=3, ignore_eos=True)["usage"]["completion_tokens"] == 3


def B68():
    """Empty inputs."""
    server.refused(CHAT, {"messages": []}, param="messages")
    server.refused(CHAT, {}, param="messages")
    server.refused(CHAT, {"messages": [{"content": "x"}]}, param="messages[0].role")
    server.refused(CHAT, {"messages": [{"role": "alien", "content": "x"}]}, param="messages[0].role")
    server.refused(CHAT, {"messages": [{"role": "user"}]}, param="messages[0].content")
    assert chat(messages=[{"role": "user", "content": ""}], max_tokens=2)["usage"]["completion_tokens"] == 2
    assert complete(prompt="", max_tokens=2, ignore_eos=True)["usage"] | {"prompt_tokens_details": 0} == {
        "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "prompt_tokens_details": 0}
    server.refused(TEXT, {"prompt": []}, param="prompt")
    server.refused(TEXT, {"prompt": [[]]}, param="prompt")
    server.refused(TEXT, {}, param="prompt")
    assert server.post("/tokenize", {"prompt": ""})["tokens"] == []


def B70():
    """Headers and framing of streams."""
    body = {"model": NAME, "prompt": "Once", "max_tokens": 60, "ignore_eos": True, "stream": True}
    _, headers, _ = server.request("POST", TEXT, body)
    assert headers["Content-Type"].startswith("text/event-stream") and headers["Cache-Control"] == "no-cache" and headers["X-Accel-Buffering"] == "no"
    for version, extra in (("1.0", ""), ("1.1", "Connection: close\r\n")):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(post(TEXT, body, extra, version))
            head, text = read_until_closed(sock).split(b"\r\n\r\n", 1)
            assert b"connection: close" in head.lower() and (b"chunked" in head.lower()) == (version == "1.1")
            if version == "1.0":
                chunks_of(text)
    # The first chunk leaves when the first token is there, not with the last.
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        start = time.monotonic()
        sock.sendall(post(TEXT, body))
        stream = Stream(sock)
        while b"data: " not in stream.data:
            stream.more()
        first = time.monotonic() - start
        stream.reply()
        assert first < 0.5 * (time.monotonic() - start)


def B86_B90_B92():
    """Numbers at the edges of the samplers' ranges."""
    greedy = chat(temperature=0, max_tokens=12)["choices"]
    for same in (dict(temperature=1e-12), dict(temperature=1e-45), dict(temperature=1, top_k=1), dict(temperature=5, top_p=0), dict(temperature=5, min_p=1)):
        assert chat(max_tokens=12, **same)["choices"] == greedy, same
    plain = chat(seed=3, max_tokens=12)["choices"]
    for same in (dict(top_k=0), dict(top_k=-1), dict(top_k=10**9), dict(top_p=1.0), dict(min_p=0), dict(repeat_last_n=0, repetition_penalty=2)):
        assert chat(seed=3, max_tokens=12, **same)["choices"] == plain, same
    whole = complete(prompt="1 2 1 2 1 2", temperature=0, max_tokens=12, repetition_penalty=5, repeat_last_n=-1)["choices"]
    assert whole == complete(prompt="1 2 1 2 1 2", temperature=0, max_tokens=12, repetition_penalty=5, repeat_last_n=2**31 - 1)["choices"]
    assert whole != complete(prompt="1 2 1 2 1 2", temperature=0, max_tokens=12)["choices"]
    assert chat(temperature=1e9, max_tokens=12, seed=1, logprobs=True)["usage"]["completion_tokens"] <= 12
    for bad in (dict(temperature=-1), dict(temperature=1e10), dict(top_p=1.5), dict(top_p=-0.1), dict(top_k=-2), dict(top_k=1.5), dict(min_p=2),
                dict(repetition_penalty=0), dict(presence_penalty=2.5), dict(repeat_last_n=-2), dict(temperature="1"), dict(temperature=True)):
        server.refused(CHAT, {"messages": HI, **bad}, param=next(iter(bad)))


def B71_to_B83_B99():
    """What is not there yet is refused by name, and never ignored: constraints, context shifts, tools, speculation."""
    schema = lambda s: {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": s}}}
    for fields in (schema({"type": "strin"}), schema({"pattern": "[a-"}), schema({"$ref": "#/$defs/none"}), {"response_format": {"type": "json_object"}},
                   {"grammar": 'root ::= "a" undefined-rule'}, {"grammar": "root ::= " + "(" * 60000 + '"a"' + ")" * 60000}, {"guided_json": {}},
                   {"min_tokens": 5}, {"n_discard": -1}, {"n_keep": -5}, {"n_keep": 10**9}, {"tool_choice": "required"}, {"cache_prompt": True},
                   {"tools": [{"type": "function", "function": {"name": "f"}}]}, {"use_beam_search": True}, {"n_predict": 5}, {"truncate": 4}):
        server.refused(CHAT, {"messages": HI, **fields}, param=next(iter(fields)))
    server.refused("/v1/embeddings", {"input": "x"}, param="model", code="wrong_task")
    chat(max_tokens=1)


def B101():
    """A request that can never fit is refused at once and holds up nobody."""
    with Mekik(block_tokens=16, memory="18432000B") as small:  # 50 blocks of SmolLM2
        assert small.metric("mekik_kv_blocks") == 50
        start = time.monotonic()
        small.refused(TEXT, {"prompt": [100 + i for i in range(1002)], "max_tokens": 5}, code="context_length_exceeded")
        assert time.monotonic() - start < 1
        for _ in range(5):
            small.complete(max_tokens=5)
        # The largest that fits does, beside others.
        results = []
        threads = [threading.Thread(target=lambda n=n: results.append(small.complete(prompt=[100 + i for i in range(n)], max_tokens=8, ignore_eos=True)))
                   for n in (790, 700, 20, 30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [r["usage"]["completion_tokens"] for r in results] == [8] * 4
        small.wait_until_idle()


def beside(count, run, **fields):
    """run() while `count` other requests are answered again and again."""
    over = threading.Event()

    def other(number):
        while not over.is_set():
            complete(prompt=f"Number {number}: " + "and so on " * 10 * number, max_tokens=10, ignore_eos=True, **fields)

    threads = [threading.Thread(target=other, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    try:
        return run()
    finally:
        over.set()
        for thread in threads:
            thread.join()


def B103():
    """A seed is kept beside requests with other seeds and with none."""
    ask = lambda: chat(seed=42, temperature=0.8, max_tokens=40, logprobs=True)["choices"]
    alone = ask()
    assert ask() == alone
    for _ in range(4):
        assert beside(1, ask, temperature=0.8) == alone
    assert beside(1, ask, temperature=0.8, seed=7) == alone


def B105():
    """A greedy answer does not depend on who else is there, nor on how the prompt is cut."""
    prompt = "The loom was old, and " * 20
    ask = lambda of=None: (of or server).post(TEXT, {"prompt": prompt, "temperature": 0, "max_tokens": 30, "logprobs": 3})["choices"]
    alone = ask()
    for neighbours in (1, 3, 7):
        assert beside(neighbours, ask) == alone, neighbours
    with Mekik(max_batch_tokens=16) as chunked:
        assert ask(chunked) == alone


def ends_well():
    server.wait_until_idle()
    assert server.stop() == 0, server.log


main([B20, B21, B49, B51, B54, B56, B57, B58, B60, B62, B63, B66, B68, B70, B86_B90_B92, B71_to_B83_B99, B101, B103, B105,
      ends_well])
