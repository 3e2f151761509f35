"""Writes inputs of template.cpp into the folder given: templates in the style of real ones, one for each part of the language, and messages."""
import json
import os
import sys

MESSAGES = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": " hi <|im_end|> é🦀 "},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": [1, 2.5]}"}}]},
    {"role": "tool", "content": [{"type": "text", "text": "part A"}, {"type": "text", "text": "part B"}], "tool_call_id": "1"},
]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}]
CONTEXT = {"messages": MESSAGES, "tools": TOOLS, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "n": 3}

TEMPLATES = {
    "chatml": "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "turns": "{{ bos_token }}{% if messages[0].role == 'system' %}{% set first = messages[0].content | trim %}{% set rest = messages[1:] %}"
             "{% else %}{% set rest = messages %}{% endif %}{%- for m in rest -%}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
             "{{ raise_exception('roles must alternate') }}{% endif %}{% if m.content is string %}{{ m.content | trim }}{% endif %}{%- endfor -%}",
    "tools": "{%- if tools %}{% for t in tools %}{{ t | tojson }}{{ '\n' }}{% endfor %}{% endif %}{% for m in messages if m.tool_calls is defined %}"
             "{% for c in m.tool_calls %}{{ c.function.name }}({{ c.function.arguments | tojson(indent=2) }}){% endfor %}{% endfor %}",
    "namespace": "{% set ns = namespace(last=-1, found=false) %}{% for m in messages[::-1] %}{% set i = messages | length - 1 - loop.index0 %}"
                 "{% if not ns.found and m.role == 'user' %}{% set ns.last = i %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.last }}",
    "macro": "{% macro show(x, depth=0) %}{% if x is mapping %}{% for k, v in x | items %}{{ k }}: {{ show(v, depth + 1) }}{% endfor %}"
             "{% elif x is iterable and x is not string %}{% for v in x %}{{ show(v, depth + 1) }}{% endfor %}{% else %}{{ x }}{% endif %}"
             "{% endmacro %}{{ show(messages) }}{{ show(tools) }}",
    "call": "{% macro box(t) %}[{{ t }}{{ caller() }}]{% endmacro %}{% call box('a') %}{{ messages[0].content }}{% endcall %}",
    "recursive": "{% for m in messages recursive %}{{ loop.depth }}{% if m is mapping %}{{ loop(m.values() | list) }}{% else %}{{ m }}{% endif %}{% endfor %}",
    "strings": "{{ 'a,b,,c'.split(',') }}{{ 'Ab'.upper() | lower | capitalize | title | reverse }}{{ ' x '.strip() }}{{ 'abc'.replace('b', 'x') }}"
               "{{ messages[1].content.split('<')[0].rstrip() }}{{ 'abc'.startswith('a') }}{{ 'aXbX'.rfind('X') }}{{ '%s-%d' % ('a', 3) }}",
    "slices": "{{ 'abcdef'[1:5:2] }}{{ 'abcdef'[::-1] }}{{ messages[-1:][0].role }}{{ messages[9:] }}{{ [1, 2, 3][:-1] }}",
    "numbers": "{{ 7 // 2 }}{{ -7 % 3 }}{{ 2 ** 10 }}{{ 1e300 * 10 }}{{ 0.1 + 0.2 }}{{ 9223372036854775807 }}{{ n | float | int | abs }}{{ 3.7 | round }}",
    "tests": "{{ x is defined }}{{ n is number }}{{ none is none }}{{ 'a' in 'abc' }}{{ n is divisibleby 3 }}{{ n is odd and not n is even }}",
    "filters": "{{ messages | map(attribute='role') | unique | sort | join(', ') }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}"
               "{{ [3, 1, 2] | sort(reverse=true) | first }}{{ {'b': 1, 'a': 2} | dictsort }}{{ [1, 2, 3, 4, 5] | batch(2) | list }}{{ x | default('d') }}"
               "{{ messages | groupby('role') }}{{ 'a b' | urlencode }}{{ '<b>' | e }}{{ 'x' | indent(4) }}{{ [1, [2]] | string }}",
    "space": "a\n  {%- if true %}\n  b\n  {%+ endif %}\nc  {{- 1 -}}  d {# comment #}\n{% raw %}{{ x }}{% endraw %}",
    "sets": "{% set x %}<{{ messages[0].content }}>{% endset %}{% set a, b = 1, 2 %}{{ x }}{{ a ~ b }}{% with y = x %}{{ y }}{% endwith %}"
            "{% filter upper %}abc{{ x }}{% endfilter %}",
    "loops": "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% elif i == 3 %}{% break %}{% endif %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }}"
             "{{ loop.previtem }}{% else %}none{% endfor %}{{ strftime_now('%d %b %Y') }}",
    "hostile": "{{ ''.__class__.__mro__ }}",
    "endless": "{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}x{% endfor %}{% endfor %}{% endfor %}",
    "doubling": "{% set ns = namespace(s='ab', l=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% set ns.l = ns.l + ns.l %}{% endfor %}{{ ns.s }}",
    "nesting": "{% set ns = namespace(l=[], d={}) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% set ns.d = {'k': ns.d} %}{% endfor %}{{ ns.l }}",
    "itself": "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "chain": "{% set ns = namespace(f=none) %}{% for i in range(999) %}{% set before = ns.f %}{% macro f() %}{{ before() }}{% endmacro %}"
             "{% set ns.f = f %}{% endfor %}{% set ns.f = 0 %}",
    "broken": "{% for m in messages %}{{ m.role",
}

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for name, source in TEMPLATES.items():
    with open(os.path.join(folder, name), "wb") as file:
        file.write(source.encode() + b"\0" + json.dumps(CONTEXT if name in ("tools", "macro", "filters") else {"messages": MESSAGES[:2], "n": 3}).encode())
