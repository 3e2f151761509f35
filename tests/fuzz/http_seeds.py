"""Writes inputs of http.cpp into the folder given: requests as bytes, and bodies of every route."""
import json
import os
import sys

CHAT, COMPLETION, TOKENIZE, DETOKENIZE = 1, 3, 5, 7
SECOND_MODEL = 8  # added: two models are served
USER = {"role": "user", "content": "abé🦀 <|im_end|>"}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def body(kind, **fields):
    return bytes([kind]) + json.dumps(fields).encode()


def request(line, *headers, body=b""):
    return b"\0" + "\r\n".join((line, *headers, "", "")).encode() + body


SMALL = json.dumps({"messages": [USER]}).encode()
SEEDS = {
    "chat": body(CHAT, model="whole", messages=[{"role": "system", "content": "a"}, USER], max_tokens=5, temperature=0.5, top_p=0.9, top_k=5, seed=-1,
                 stop=["x", "y"], n=2, logprobs=True, top_logprobs=3, user="u"),
    "chat_stream": body(CHAT, messages=[USER], stream=True, stream_options={"include_usage": True}, max_completion_tokens=9, min_p=0.1,
                        logit_bias={"5": -100, "97": 3.5}, ignore_eos=True, skip_special_tokens=False, stop_token_ids=[1, 2], priority=-3),
    "chat_parts": body(CHAT, messages=[{"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                                       {"role": "assistant", "content": None, "tool_calls": [CALL]},
                                       {"role": "tool", "content": "1", "tool_call_id": "1"}],
                       tools=[TOOL], tool_choice="none", chat_template_kwargs={"n": 1, "enable_thinking": False}, reasoning_effort="low"),
    "chat_fields": body(CHAT, messages=[USER], repetition_penalty=1.1, presence_penalty=-1, frequency_penalty=2, repeat_last_n=64, metadata={"a": "b"},
                        response_format={"type": "text"}, store=False, parallel_tool_calls=True, add_generation_prompt=False),
    "chat_unknown": body(CHAT, messages=[USER], max_tokns=1),
    "completion": body(COMPLETION, prompt="ab ab", max_tokens=3, logprobs=2, echo=True, best_of=1, stop="b"),
    "completion_list": body(COMPLETION, prompt=["a", "b"], n=3, stream=True),
    "completion_ids": body(COMPLETION, prompt=[[1, 2], [3]], max_tokens=0, echo=True, logprobs=0),
    "completion_bare": body(COMPLETION + SECOND_MODEL, model="bare", prompt=[97, 98], max_tokens=100),
    "completion_other": body(COMPLETION + SECOND_MODEL, model="nosuch", prompt="a"),
    "tokenize": body(TOKENIZE, prompt="ab<s>", add_special_tokens=False, return_token_strs=True),
    "tokenize_chat": body(TOKENIZE, messages=[USER], add_generation_prompt=True),
    "detokenize": body(DETOKENIZE, tokens=[97, 256, 258, 195, 169]),
    "text": bytes([CHAT]) + b'{"messages": [{"role": "user", "content": "\\ud83e\\udd80"}], "seed": 18446744073709551615, "temperature": 1e-7, "n": 1.0}',
    "deep": bytes([CHAT]) + b'{"a":' + b"[" * 70 + b"]" * 70 + b"}",
    "twice": bytes([CHAT]) + b'{"n": 1, "n": 2}',
    "post": request("POST /v1/chat/completions HTTP/1.1", "Host: h", "Authorization: Bearer secret", "Content-Type: application/json",
                    f"Content-Length: {len(SMALL)}", body=SMALL + b"GET / HTTP/1.1\r\n"),
    "chunked": request("POST /v1/completions HTTP/1.1", "Host: h", "Transfer-Encoding: chunked", "Expect: 100-continue",
                       body=b"5;x=y\r\n{\"a\":\r\n2\r\n1}\r\n0\r\nTrailer: t\r\n\r\n"),
    "get": request("GET /v1/models/a%20b?x=1 HTTP/1.0", "Connection: keep-alive, close", "X-Request-Id: a"),
    "absolute": b"\0\r\n" + request("OPTIONS http://host/health/live HTTP/1.1", "host:h")[1:],
    "star": request("OPTIONS * HTTP/1.1", "Host: h"),
    "both": request("POST / HTTP/1.1", "Host: h", "Content-Length: 1", "Transfer-Encoding: chunked"),
    "bare_lf": b"\0GET / HTTP/1.1\nHost: h\n\n",
    "long": request("GET /" + "a" * 3000 + " HTTP/1.1", "Host: h"),
    "tls": b"\0\x16\x03\x01\x02\x00",
}

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for name, data in SEEDS.items():
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
