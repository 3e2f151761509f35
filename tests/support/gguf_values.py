"""The values of a GGUF file as bytes, for tests that write one by hand, sound or damaged."""
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    if kind == STRING:
        return text(v)
    if kind == ARRAY:
        of, items = v
        return struct.pack("<IQ", of, len(items)) + b"".join(value(of, item) for item in items)
    return struct.pack("<" + CODES[kind], v)
