"""Encoders: bit for bit the gguf package's or ggml's where those are simple; else, and with importance, a bound on the error."""
import os
import sys
import zlib

from common import dequantize, folder, gguf, np, run, sizes

ROWS, K = 64, 1024

# Relative root mean square errors of ggml's quantizers on the values below, plain and weighted with importance: ggml_quantize_chunk of
# llama.cpp as packaged in llama-cpp-python 0.3.36, on x86-64. Ours may be at most 2% above.
REFERENCE = {"Q4_0": (0.086088, 0.075233), "Q4_1": (0.078118, 0.060386), "Q5_0": (0.042647, 0.037251), "Q5_1": (0.037798, 0.029201),
             "Q8_0": (0.005370, 0.005374), "Q2_K": (0.296089, 0.213986), "Q3_K": (0.150898, 0.125822), "Q4_K": (0.071369, 0.061557),
             "Q5_K": (0.036160, 0.031600), "Q6_K": (0.017743, 0.015363), "IQ4_NL": (0.075866, 0.067727), "IQ4_XS": (0.076479, 0.068534),
             "TQ1_0": (0.805724, 0.806294), "TQ2_0": (0.805724, 0.806294), "MXFP4": (0.114764, 0.114453), "NVFP4": (0.095201, 0.094827),
             "Q1_0": (0.600860, 0.599976), "Q2_0": (0.716763, 0.717264)}
# Types whose encoder is the package's, bit for bit; and those it lacks, with the CRC-32 of what ggml makes of edge_rows().
PACKAGE = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]
GGML = {"NVFP4": 0x62dff899, "Q1_0": 0xdd789efd, "Q2_0": 0x70112ab5}


def encode(where, kind, x, importance=None):
    paths = [os.path.join(where, name) for name in ("x", "blocks", "importance")]
    x.tofile(paths[0])
    if importance is not None:
        importance.tofile(paths[2])
    run("encode", kind.lower(), *x.shape, paths[0], paths[1], *([paths[2]] if importance is not None else []))
    return np.fromfile(paths[1], np.uint8).reshape(x.shape[0], -1)


def error(x, back, weight=1.0):
    return float(np.sqrt(np.sum(weight * (x - back) ** 2) / np.sum(weight * x ** 2)))


def edge_rows(x):
    """Rows that trip encoders: zeros, one value, constants, tiny, negative only, a lone spike."""
    x = x.copy()
    x[0] = 0
    x[1] = 0
    x[1, 5] = 3
    x[2] = 0.25
    x[3] = -0.25
    x[4] *= 1e-30
    x[5] = -np.abs(x[5])
    x[6] = np.abs(x[6])
    x[7, ::32] = 100
    return x


def main():
    rng = np.random.default_rng(7)
    x = rng.normal(0, 1, (ROWS, K)).astype(np.float32)
    importance = (rng.random(K) ** 4 + 1e-3).astype(np.float32)
    bad = []
    with folder() as where:
        for kind in REFERENCE:
            blocks = encode(where, kind, edge_rows(x))
            if kind in GGML and zlib.crc32(blocks.tobytes()) != GGML[kind]:
                bad.append(f"{kind}: encode() differs from ggml")
            if kind in PACKAGE:
                with np.errstate(all="ignore"):
                    want = gguf.quants.quantize(edge_rows(x), gguf.GGMLQuantizationType[kind])
                if not np.array_equal(blocks, want):
                    rows = np.unique(np.argwhere(blocks != want)[:, 0])
                    bad.append(f"{kind}: encode() differs from the gguf package in rows {rows[:10]}")
            back = dequantize(blocks, kind)
            if not np.all(np.isfinite(back)) or np.any(back[0] != 0):
                bad.append(f"{kind}: zeros or finite values do not stay so")
            plain = error(x, dequantize(encode(where, kind, x), kind))
            weighted = error(x, dequantize(encode(where, kind, x, importance), kind), importance)
            for name, ours, theirs in zip(("error", "weighted error"), (plain, weighted), REFERENCE[kind]):
                if ours > 1.02 * theirs:
                    bad.append(f"{kind}: {name} {ours:.6f}, the reference has {theirs:.6f}")
            print(f"{kind}: error {plain:.6f} ({REFERENCE[kind][0]:.6f}), weighted {weighted:.6f} ({REFERENCE[kind][1]:.6f})")
    sys.exit("\n".join(bad) or 0)


main()
