"""docs/api.md against the code: the same endpoints, fields, sampler options, error codes, limits and metrics, no more and no fewer."""
import glob
import json
import os
import re
import subprocess

from harness import BINARY, main

SOURCE = os.environ["MEKIK_SOURCE"]
with open(os.path.join(SOURCE, "docs/api.md"), encoding="utf-8") as file:
    DOC = file.read()
TABLES = json.loads(subprocess.check_output([BINARY, "--tables"], text=True))
PROGRAM = os.path.join(os.environ["MEKIK_BUILD"], "bin", "mekik")
KINDS = {1: "chat", 2: "completions", 4: "tokenize", 8: "detokenize", 16: "embeddings", 32: "rerank"}
POLICIES = ["honoured", "only", "logged", "warned", "refused"]
TYPES = ["", "counter", "gauge", "histogram"]


def table(header):
    """The rows of the one table that begins so."""
    parts = DOC.split("\n" + header + "\n|")
    assert len(parts) == 2, f"docs/api.md has not one table {header}"
    rows = parts[1].split("\n\n")[0].rstrip().split("\n")[1:]
    return [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows]


def code(cell):
    assert cell[0] == cell[-1] == "`", cell
    return cell[1:-1]


def endpoints():
    said = [(row[0], code(row[1]).replace("NAME", ""), row[2] == "no") for row in table("| method | path | key | what |")]
    assert said == [(r["method"], r["path"], r["open"]) for r in TABLES["routes"]], said


def fields():
    said = {code(row[0]): row[1:] for row in table("| field | of | way | what |")}
    assert list(said) == [row["name"] for row in TABLES["fields"]], set(said) ^ {row["name"] for row in TABLES["fields"]}
    for row in TABLES["fields"]:
        of, way, what = said[row["name"]]
        assert of == ", ".join(name for bit, name in KINDS.items() if row["kinds"] & bit), row
        expected = POLICIES[row["policy"]] + "".join(f" `{value}`" for value in row["allowed"].split())
        assert way == expected, (row, way)
        assert what == row["why"] if row["why"] else what, row


def sampler_fields():
    described = json.loads(subprocess.check_output([PROGRAM, "describe", "sampler/standard", "--json"], text=True))
    options = {option["key"]: option for option in described[0]["options"]}
    said = {code(row[0]): row[1:4] for row in table("| field | from | to | default | what |")}
    assert set(said) == set(options), set(said) ^ set(options)
    for name, (low, high, fallback) in said.items():
        option = options[name]
        assert (float(low), float(high)) == (option["min"], option["max"]) if low else "min" not in option, name
        assert code(fallback) == option["default"] if fallback[0] == "`" else fallback == option["default"], (name, option)


def error_codes():
    text = "".join(open(path).read() for path in glob.glob(os.path.join(SOURCE, "core/server/**/*.cpp"), recursive=True))
    used = set(re.findall(r'"([a-z_]+)",\s*\{(?:\}|\{"[A-Z])', text))
    said = [code(row[1]) for row in table("| status | code | when |")]
    assert sorted(used) == sorted(said), used ^ set(said)


def limits():
    schema = json.loads(subprocess.check_output([PROGRAM, "schema"], text=True))
    options = schema["$defs"]["server"]["properties"]
    said = {code(row[0]): row[1] for row in table("| key | default | what |")}
    assert set(said) == set(options), set(said) ^ set(options)
    for key, fallback in said.items():
        expected = options[key].get("default", "")
        expected = f"`{json.dumps(expected)}`" if isinstance(expected, list) else json.dumps(expected).strip(chr(34))
        assert fallback == expected, (key, fallback, expected)


def metrics():
    said = [(code(row[0]), row[1], row[2]) for row in table("| name | type | what |")]
    assert said == [(m["name"], TYPES[m["type"]], m["help"]) for m in TABLES["metrics"]], said


main([endpoints, fields, sampler_fields, error_codes, limits, metrics])
