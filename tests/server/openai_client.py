"""The server through OpenAI's own client. Skipped (77) without the package."""
import sys

try:
    import openai
except ImportError:
    print("skipped: the package openai is missing")
    sys.exit(77)

from harness import Server, main

server = Server("--key", "sk-test")
client = openai.OpenAI(base_url=server.base + "/v1", api_key="sk-test", max_retries=0)
HI = [{"role": "user", "content": "hi"}]


def fails(kind, call, **fields):
    try:
        call(**fields)
    except kind as error:
        return error
    raise AssertionError(f"accepted: {fields}")


def models():
    assert [m.id for m in client.models.list()] == ["fake", "bare"]
    assert client.models.retrieve("fake").id == "fake"
    fails(openai.NotFoundError, client.models.retrieve, model="none")


def chat():
    answer = client.chat.completions.create(model="fake", messages=HI, seed=42, max_tokens=64)
    again = client.chat.completions.create(model="fake", messages=HI, seed=42, max_tokens=64)
    assert answer.choices[0].message.content == again.choices[0].message.content == "answer 0 of seed 42."
    assert answer.choices[0].finish_reason == "stop" and answer.choices[0].message.role == "assistant"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    cut = client.chat.completions.create(model="fake", messages=HI, max_tokens=3)
    assert cut.choices[0].finish_reason == "length" and cut.usage.completion_tokens == 3


def several_answers():
    answer = client.chat.completions.create(model="fake", messages=HI, n=2, seed=7)
    assert [c.index for c in answer.choices] == [0, 1]
    assert answer.choices[0].message.content != answer.choices[1].message.content
    one = client.chat.completions.create(model="fake", messages=HI, n=1, seed=7)
    assert answer.usage.prompt_tokens == one.usage.prompt_tokens
    assert answer.usage.completion_tokens == 2 * one.usage.completion_tokens


def streams_equal_whole_answers():
    for text in ["🦀歪ď 삼겹살", "plain", "two\nlines \"quoted\""]:
        messages = [{"role": "user", "content": f"FORCE({text})"}]
        whole = client.chat.completions.create(model="fake", messages=messages)
        assert whole.choices[0].message.content == text
        chunks = list(client.chat.completions.create(model="fake", messages=messages, stream=True, stream_options={"include_usage": True}))
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == text
        assert chunks[-1].usage == whole.usage and not chunks[-1].choices


def stops():
    for stop, shown in [(["STOP"], "one two "), (["two ST"], "one "), (["four", "two"], "one "), (["nothing of it"], "one two STOP four")]:
        messages = [{"role": "user", "content": "FORCE(one two STOP four)"}]
        answer = client.chat.completions.create(model="fake", messages=messages, stop=stop)
        assert answer.choices[0].message.content == shown and answer.choices[0].finish_reason == "stop"


def chat_logprobs():
    messages = [{"role": "user", "content": "FORCE(a🦀)"}]
    answer = client.chat.completions.create(model="fake", messages=messages, logprobs=True)
    content = answer.choices[0].logprobs.content
    assert bytes(b for item in content for b in item.bytes).decode() == answer.choices[0].message.content
    assert all(item.top_logprobs == [] and item.logprob < 0 for item in content)
    answer = client.chat.completions.create(model="fake", messages=messages, logprobs=True, top_logprobs=5, stream=True)
    items = [item for c in answer if c.choices and c.choices[0].logprobs for item in c.choices[0].logprobs.content]
    assert len(items) == 5 and all(len(item.top_logprobs) == 5 for item in items)
    for item in items:
        values = [top.logprob for top in item.top_logprobs]
        assert item.bytes in [top.bytes for top in item.top_logprobs] and len(values) == 5
    for bad in [dict(logprobs=True, top_logprobs=21), dict(top_logprobs=5)]:
        assert fails(openai.BadRequestError, client.chat.completions.create, model="fake", messages=HI, **bad).param == "top_logprobs"


def completions_and_echo():
    for stream in (False, True):
        for text, limit in [("\n1. Carol has 20", 0), ("é FORCE(🦀x)", 8)]:
            answer = client.completions.create(model="fake", prompt=text, max_tokens=limit, echo=True, logprobs=1, stream=stream)
            parts = list(answer) if stream else [answer]
            choices = [p.choices[0] for p in parts]
            shown = "".join(c.text for c in choices)
            assert shown == text + ("" if limit == 0 else "🦀x"), shown
            tokens = [t for c in choices for t in c.logprobs.tokens]
            scores = [t for c in choices for t in c.logprobs.token_logprobs]
            offsets = [t for c in choices for t in c.logprobs.text_offset]
            assert "".join(tokens) == shown and scores[0] is None and all(s < 0 for s in scores[1:])
            assert offsets == [len("".join(tokens[:i])) for i in range(len(tokens))]
            tops = [t for c in choices for t in c.logprobs.top_logprobs]
            assert tops[0] is None and all(len(t) == 1 for t in tops[1:])
            assert len(tokens) == len(text.encode()) + (0 if limit == 0 else 5)
            assert choices[-1].finish_reason is not None
            if not stream:
                assert answer.usage.completion_tokens == (0 if limit == 0 else 5) and answer.usage.prompt_tokens == len(text.encode())


def several_prompts():
    answer = client.completions.create(model="fake", prompt=["FORCE(a)", "FORCE(b)"], n=2)
    assert [(c.index, c.text) for c in answer.choices] == [(0, "a"), (1, "a"), (2, "b"), (3, "b")]
    assert answer.usage.prompt_tokens == 16
    assert client.completions.create(model="fake", prompt=list(b"FORCE(t)")).choices[0].text == "t"


def refusals():
    create = client.chat.completions.create
    assert fails(openai.NotFoundError, create, model="../../etc/passwd", messages=HI).code == "model_not_found"
    assert "template cannot be used: template:1:1" in str(fails(openai.BadRequestError, create, model="bare", messages=HI))
    assert fails(openai.BadRequestError, create, model="fake", messages=HI, n=1000000).param == "n"
    assert fails(openai.BadRequestError, create, model="fake", messages=HI, response_format={"type": "json_object"}).param == "response_format"
    assert fails(openai.BadRequestError, create, model="fake", messages=HI, extra_body={"max_tokns": 5}).param == "max_tokns"
    error = fails(openai.BadRequestError, client.completions.create, model="fake", prompt="x" * 9000)
    assert error.code == "context_length_exceeded" and "8192" in str(error) and "9000" in str(error)
    assert fails(openai.InternalServerError, create, model="fake", messages=[{"role": "user", "content": "FAIL"}]).status_code == 500
    fails(openai.InternalServerError, create, model="fake", messages=[{"role": "user", "content": "FAIL"}], stream=True)
    wrong = openai.OpenAI(base_url=server.base + "/v1", api_key="sk-tes", max_retries=0)
    fails(openai.AuthenticationError, wrong.models.list)


def warnings_are_shown():
    answer = client.chat.completions.create(model="fake", messages=HI, metadata={"a": "b"})
    assert len(answer.model_extra["warnings"]) == 1


def tokenizing():
    http = client._client
    headers = {"Authorization": "Bearer sk-test"}
    answer = http.post(server.base + "/tokenize", json={"model": "fake", "prompt": "hé", "return_token_strs": True}, headers=headers).json()
    assert answer["tokens"] == [104, 195, 169] and answer["count"] == 3 and answer["max_model_len"] == 8192
    assert http.post(server.base + "/detokenize", json={"model": "fake", "tokens": answer["tokens"]}, headers=headers).json() == {"prompt": "hé"}
    chat_tokens = http.post(server.base + "/tokenize", json={"model": "fake", "messages": HI}, headers=headers).json()
    assert chat_tokens["count"] == client.chat.completions.create(model="fake", messages=HI).usage.prompt_tokens


def ends_well():
    assert server.stop() == 0, server.log


main([models, chat, several_answers, streams_equal_whole_answers, stops, chat_logprobs, completions_and_echo, several_prompts, refusals,
      warnings_are_shown, tokenizing, ends_well])
