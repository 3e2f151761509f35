"""The tables of families: a name, and how its tiny models are made (base.py)."""
import importlib

TABLES = ["dense", "mixtures", "hybrids", "encoders", "repacked"]


def families():
    out = {}
    for table in TABLES:
        try:
            out.update(importlib.import_module(f"families.{table}").FAMILIES)
        except ModuleNotFoundError:
            continue
    return out
