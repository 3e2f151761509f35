"""Writes inputs of answer.cpp into the folder given: the formats that we ship, each with an answer in it."""
import os
import sys

FORMATS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "formats")
OBJECT = '{"name": "f", "arguments": {"a": "x </tool_call> \\" é", "b": 2}}'
ANSWERS = {
    "think": "<think>\nHm.\n</think>\n\nYes. <think>No.</think>\n",
    "hermes": f"Look.\n<tool_call>\n{OBJECT}\n</tool_call>\n<tool_call>{OBJECT}</tool_call>, <tool_call> and {{}}",
    "llama3": f"{OBJECT}; {OBJECT}\n",
    "llama4": "[f(a='x, )\\'', b=-2), f(b=[1, {'c': None}])]",
    "mistral": f"[TOOL_CALLS][{OBJECT}][TOOL_CALLS]f[ARGS]{{\"a\": 1}}",
    "harmony": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
    "solar": "<|think|>Hm.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>i<|tool_call:name|>f<|tool_call:args|>{}<|tool_call:end|><|calls|>",
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=a>\nx </parameter>\n\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>",
    "glm4": "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"x\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "kimi_k3": "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"a\" type=\"string\"<|sep|>1<|close|>argument<|sep|>"
               "<|close|>call<|sep|><|close|>tools<|sep|>",
    "gemma4": "<|channel>thought\nHm.<channel|><|tool_call>call:f{a:<|\"|>x{\"<|\"|>,b:[1,{c:true}]}<tool_call|>",
    "minimax_m3": "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<a>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[</a>"
                  "]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
    "apertus": "<|tools_prefix|>[{\"f\": {\"a\": 1}}]<|tools_suffix|>",
    "command_r": f"Action: ```json\n[{OBJECT}]```",
}

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for name, answer in ANSWERS.items():
    with open(os.path.join(FORMATS, name + ".toml"), "rb") as file:
        page = file.read()
    with open(os.path.join(folder, name), "wb") as file:
        file.write(page + b"\0" + answer.encode())
