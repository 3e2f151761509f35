"""Blocks from the field with the values they stand for: decode() and the decoded form give them to the bit."""
import json
import os
import sys

from common import TYPES, decode, folder, np, same_bits

CASES = os.environ.get("MEKIK_CASES") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/cases")


def main():
    vectors = []
    for name in ("quant_vectors.json", "quant_vectors_extra.json"):
        path = os.path.join(CASES, name)
        if not os.path.exists(path):
            print(f"skipped: no {path}")
            sys.exit(77)
        with open(path) as file:
            vectors += [v for v in json.load(file) if v["type"] in TYPES]
    tensors = [(f"{i}.{v['type']}", v["type"], np.frombuffer(bytes.fromhex(v["hex"]), np.uint8)[None, :].copy())
               for i, v in enumerate(vectors)]
    bad = []
    with folder() as where:
        for (name, _, _), vector, ways in zip(tensors, vectors, decode(where, tensors)):
            bad += [name for way in ways if not same_bits(way, np.array(vector["values"], np.float32))]
    print(f"{len(vectors)} vectors of {sorted({v['type'] for v in vectors})}")
    sys.exit("\n".join(bad) or 0)


main()
