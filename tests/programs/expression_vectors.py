#!/usr/bin/env python3
"""Writes expression_vectors.json: random constant expressions of the page language and their values by Python's arithmetic.

    python expression_vectors.py
"""
import ast
import json
import math
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {"a": 7, "b": -3, "c": 2.5, "zero": 0, "yes": True, "kinds": ["x", "y", "x"], "counts": [4, 0, 9], "word": "xyx"}
CALLS = {"sqrt": math.sqrt, "log": math.log, "pow": lambda a, b: math.pow(a, b), "min": min, "max": max, "floor": math.floor, "ceil": math.ceil,
         "int": int, "len": len, "largest": lambda v: max(v) if isinstance(v, list) else v, "range": lambda *a: list(range(*a)),
         "index": lambda v, x: v.index(x), "each": lambda v, s: [x == s for x in v], "where": lambda v: [i for i, x in enumerate(v) if x]}
BINARY = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Mod: lambda a, b: a % b,
          ast.FloorDiv: lambda a, b: a // b,
          ast.Div: lambda a, b: a // b if isinstance(a, int) and isinstance(b, int) and b and a % b == 0 else a / b}
COMPARE = {ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b,
           ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}


def value(n):
    if isinstance(n, ast.Constant):
        return n.value
    if isinstance(n, ast.Name):
        return {"true": True, "false": False, "none": None, **NAMES}[n.id]
    if isinstance(n, ast.List):
        return [value(x) for x in n.elts]
    if isinstance(n, ast.BinOp):
        return BINARY[type(n.op)](value(n.left), value(n.right))
    if isinstance(n, ast.UnaryOp):
        return (not value(n.operand)) if isinstance(n.op, ast.Not) else -value(n.operand)
    if isinstance(n, ast.BoolOp):
        test = all if isinstance(n.op, ast.And) else any
        return test(value(x) for x in n.values)
    if isinstance(n, ast.Compare):
        return COMPARE[type(n.ops[0])](value(n.left), value(n.comparators[0]))
    if isinstance(n, ast.Subscript):
        return value(n.value)[value(n.slice)]
    if n.func.id == "choose":
        return value(n.args[1 if value(n.args[0]) else 2])
    return CALLS[n.func.id](*[value(x) for x in n.args])


def number(r, depth):
    if depth == 0:
        return r.choice(["a", "b", "c", "zero", str(r.randint(0, 12)), f"{r.randint(0, 9)}.{r.randint(1, 99)}", "1e-3", "2.5E2"])
    x, y = number(r, depth - 1), number(r, depth - 1)
    return r.choice([f"{x} + {y}", f"{x} - {y}", f"{x} * {y}", f"{x} / {y}", f"{x} // {y}", f"{x} % {y}", f"({x})", f"-({x})", f"min({x}, {y})",
                     f"max({x}, {y})", f"floor({x})", f"ceil({x})", f"int({x})", f"sqrt(({x}) * ({x}))", f"log(1 + ({x}) * ({x}))", "len(kinds)",
                     f"choose({truth(r, depth - 1)}, {x}, {y})", "largest(counts)", f"counts[{r.randint(0, 2)}]", f"range({r.randint(1, 4)}, 9)[0]",
                     "index(kinds, 'y')", "where(counts)[1]", "len(where(each(kinds, 'x')))"])


def truth(r, depth):
    if depth == 0:
        return r.choice(["true", "false", "yes"])
    x, y, t, u = number(r, depth - 1), number(r, depth - 1), truth(r, depth - 1), truth(r, depth - 1)
    return r.choice([f"{x} {op} {y}" for op in ("==", "!=", "<", "<=", ">", ">=")] + [f"not {t}", f"{t} and {u}", f"{t} or {u}", f"({t})",
                    f"{x} in counts", f"{x} not in [1, {y}]", "word[1] == 'y'", f"kinds[{r.randint(0, 2)}] in ['x', 'z']", "none == none"])


r = random.Random(1)
out = []
while len(out) < 400:
    text = (number if r.random() < 0.6 else truth)(r, r.randint(1, 4))
    try:
        v = value(ast.parse(text, mode="eval").body)
    except (ZeroDivisionError, OverflowError, ValueError, IndexError):
        continue
    if len(text) < 200 and not isinstance(v, complex) and abs(v) < 1e15:
        out.append([text, v])
with open(f"{HERE}/expression_vectors.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(x) for x in out) + "\n]\n")
