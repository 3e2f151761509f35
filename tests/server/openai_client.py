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
    assert [m.id for m in client.models.list()] == ["fake", "tools", "bare"]
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


TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


def say(text, **fields):
    """The whole message of an answer that says `text`, with its reason, which the stream must give, too."""
    messages = [{"role": "user", "content": f"FORCE({text})"}]
    fields = {"model": "tools", "messages": messages, **fields}
    whole = client.chat.completions.create(**fields)
    chunks = list(client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True}))
    message, calls, reason = {"content": "", "reasoning_content": ""}, [], None
    for chunk in chunks:
        for choice in chunk.choices:
            reason = choice.finish_reason or reason
            delta = choice.delta.model_dump(exclude_unset=True)
            assert None not in delta.values(), delta
            for key in message:
                message[key] += delta.get(key, "")
            assert delta.get("reasoning", "") == delta.get("reasoning_content", "")
            for call in delta.get("tool_calls", []):
                if "id" in call:  # the first of a call, and the only one with an id and a name
                    assert call["index"] == len(calls) and call["type"] == "function" and call["function"]["name"]
                    calls.append(call)
                else:
                    assert call["index"] == len(calls) - 1 and list(call["function"]) == ["arguments"] and set(call) == {"index", "function"}
                    calls[-1]["function"]["arguments"] += call["function"]["arguments"]
    one = whole.choices[0]
    shown = one.message.model_dump(exclude_unset=True)
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[-1].usage == whole.usage
    assert (shown["content"] or "", shown.get("reasoning_content", "")) == (message["content"], message["reasoning_content"]), (shown, message)
    strip = lambda calls: [(c["type"], c["function"]) for c in calls]
    assert strip(shown.get("tool_calls", [])) == strip(calls) and reason == one.finish_reason
    assert len({c["id"] for c in calls}) == len(calls) == len({c["id"] for c in shown.get("tool_calls", [])})
    return one.message, one.finish_reason, whole


def reasoning():
    for text, wanted in [("<think>a</think>b", ("a", "b")), ("<think>\na 🦀\n</think>\n\nb", ("a 🦀", "b")), ("<think>a", ("a", "")),
                         ("x < y and <thin air", (None, "x < y and <thin air"))]:
        message, reason, whole = say(text)
        assert (getattr(message, "reasoning_content", None), message.content) == wanted and reason == "stop", message
        assert (whole.usage.completion_tokens_details.reasoning_tokens > 0) == (wanted[0] is not None)
        assert say(text, extra_body={"separate_reasoning": False})[0].content == text
        kept = say(text, extra_body={"include_reasoning": False})[0]
        assert kept.content == wanted[1] and getattr(kept, "reasoning_content", None) is None
    opened = {"extra_body": {"chat_template_kwargs": {"thinks": True}}}
    message = say("a</think>b", **opened)[0]
    assert (message.reasoning_content, message.content) == ("a", "b")
    assert say("a", **opened)[0].reasoning_content == "a"
    # The scores are those of the content, and all of it.
    for text in ("<think>a</think>\n\nbé ", "plain"):
        _, _, whole = say(text, logprobs=True, top_logprobs=2)
        items = whole.choices[0].logprobs.content
        assert bytes(b for item in items for b in item.bytes).decode() == whole.choices[0].message.content, items


def tool_calls():
    call = lambda city: '<tool_call>\n{"name": "get_weather", "arguments": {"city": "%s"}}\n</tool_call>' % city
    message, reason, _ = say(call("Paris") + "\n" + call("Rome"), tools=TOOLS)
    assert reason == "tool_calls" and message.content is None
    assert [(c.function.name, c.function.arguments) for c in message.tool_calls] == [("get_weather", '{"city": "%s"}' % c) for c in ("Paris", "Rome")]
    message, _, _ = say("<think>Hm.</think>Let me look.\n" + call("Zürich"), tools=TOOLS, tool_choice="auto")
    assert (message.content, message.reasoning_content, len(message.tool_calls)) == ("Let me look.", "Hm.", 1)
    assert len(say(call("Paris") + call("Rome"), tools=TOOLS, parallel_tool_calls=False)[0].tool_calls) == 1
    # Nobody asked for calls: then there are none.
    for fields in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        message, reason, _ = say(call("Paris"), **fields)
        assert message.content == call("Paris") and message.tool_calls is None and reason == "stop"
    message, reason, _ = say(call("Paris"), tools=TOOLS, max_tokens=55)
    assert reason == "length" and message.tool_calls[0].function.arguments == call("Paris")[:55].split('"arguments": ')[1]
    message, reason, _ = say("Use <tool_call> here", tools=TOOLS)
    assert message.content == "Use <tool_call> here" and reason == "stop"
    # What came back goes in again, as OpenAI's client sends it.
    answer = say("Let me look.\n" + call("Paris"), tools=TOOLS)[0]
    history = [{"role": "user", "content": "FORCE(It rains.)"}, answer, {"role": "tool", "tool_call_id": answer.tool_calls[0].id, "content": "rain"}]
    again = client.chat.completions.create(model="tools", messages=history, tools=TOOLS)
    assert again.choices[0].message.content == "It rains."
    create = client.chat.completions.create
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}, "maybe"):
        error = fails(openai.BadRequestError, create, model="tools", messages=HI, tools=TOOLS, tool_choice=choice)
        assert error.param == "tool_choice", error
    assert fails(openai.BadRequestError, create, model="tools", messages=HI, tool_choice="required").param == "tool_choice"
    assert fails(openai.BadRequestError, create, model="fake", messages=HI, tools=TOOLS).param == "tools"


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


main([models, chat, several_answers, streams_equal_whole_answers, reasoning, tool_calls, stops, chat_logprobs, completions_and_echo, several_prompts, refusals,
      warnings_are_shown, tokenizing, ends_well])
