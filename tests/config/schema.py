"""The JSON Schema of pipelines accepts good/*.toml and refuses bad/*.toml. Usage: schema.py PROGRAM (prints the schema)."""
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
    import tomllib
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

# What a schema does not say: other files, what is installed or on disk, --set, the shape of an address, one key against another, what only a
# warning is about.
BEYOND = {
    "extends_cycle", "extends_deep", "extends_missing", "extends_self", "no_model_file", "listen", "secrets_characters", "share_nothing",
    "set_extends", "set_unknown",
}  # fmt: skip

here = pathlib.Path(__file__).parent
schema = json.loads(subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
faults = []


def plain(value):
    """JSON has no dates; an editor shows them to the schema as something that is no text."""
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plain(element) for element in value]
    return value if isinstance(value, (bool, int, float, str)) else None


refused = 0
for path in sorted((here / "good").glob("*.toml")):
    for error in validator.iter_errors(plain(tomllib.loads(path.read_text()))):
        faults.append(f"{path.name} is good, but: {error.message}")
for path in sorted((here / "bad").glob("*.toml")):
    try:
        document = plain(tomllib.loads(path.read_text()))
    except tomllib.TOMLDecodeError:
        continue  # an editor says so before any schema is asked
    if validator.is_valid(document) != (path.stem in BEYOND):
        faults.append(f"{path.name} is bad, and the schema {'accepts' if path.stem not in BEYOND else 'refuses'} it")
    refused += path.stem not in BEYOND
if refused < 15:
    faults.append(f"only {refused} bad files were tried")

api_key = schema["$defs"]["server"]["properties"]["api_key"]
if api_key.get("writeOnly") is not True:
    faults.append("a secret is not writeOnly")
math = next(v for v in schema["$defs"]["backend"]["anyOf"] if v["properties"]["use"].get("const") == "cpu")["properties"]["math"]
if math["enum"] != ["fast", "exact"] or math["default"] != "fast" or not math["description"]:
    faults.append(f"an option lost its choices, default or description: {math}")

print("\n".join(faults) or "ok")
sys.exit(1 if faults else 0)
