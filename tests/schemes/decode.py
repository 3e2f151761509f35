"""Every block type, on blocks of any bit pattern: decode() and the decoded form are equal to the bit to the gguf package's decoder."""
import os
import sys

from common import TYPES, decode, dequantize, folder, np, run, same_bits, sizes, write_gguf

ROWS, BLOCKS = 500, 8
SPECIAL = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0xFBFF, 0x3C00]  # zeros, subnormals, Inf, NaN, largest, 1

# Where the F16 numbers of a block lie.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [], "NVFP4": [],
          "Q1_0": [0], "Q2_0": [0], "IQ1_S": [0], "IQ1_M": [], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0]}


def random_blocks(rng, kind):
    elems, size = sizes(kind)
    blocks = rng.integers(0, 256, (ROWS * BLOCKS, size), dtype=np.uint8)
    for at in HALVES[kind]:
        # A third as they fell (Inf and NaN among them), a third ordinary, the rest special.
        third = len(blocks) // 3
        blocks[third:2 * third, at:at + 2] = rng.normal(0, 0.1, third).astype(np.float16).view(np.uint8).reshape(-1, 2)
        chosen = rng.choice(np.array(SPECIAL, dtype=np.uint16), len(blocks) - 2 * third)
        blocks[2 * third:, at:at + 2] = chosen.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(ROWS, BLOCKS * size)


def float_bits(rng, kind):
    dtype = {"F32": np.uint32, "F16": np.uint16, "BF16": np.uint16}[kind]
    return rng.integers(0, np.iinfo(dtype).max, (ROWS, 64), dtype=dtype, endpoint=True).view(np.uint8).reshape(ROWS, -1)


def scaled(rng):
    """NVFP4 with a scale of the tensor beside its blocks, as GGUF files made from checkpoints have it; others in the file stay alone."""
    blocks, plain = random_blocks(rng, "NVFP4"), random_blocks(rng, "NVFP4")
    scale, other = np.array([[0.37]], np.float32), np.array([[2, 3, 4, 5]], np.float32)
    want = [dequantize(blocks, "NVFP4") * scale[0, 0], dequantize(plain, "NVFP4"), other]
    with folder() as where:
        path = os.path.join(where, "scaled.gguf")
        write_gguf(path, [("blk.0.a.weight", "NVFP4", blocks), ("blk.0.b.weight", "NVFP4", plain),
                          ("blk.0.a.scale", "F32", scale.view(np.uint8)), ("blk.0.a.input_scale", "F32", scale.view(np.uint8)),
                          ("blk.0.c.scale", "F32", other.view(np.uint8))])
        run("decode", path, os.path.join(where, "out"))
        flat = [np.fromfile(os.path.join(where, "out." + way), dtype=np.float32) for way in ("decoded", "factored")]
    want = np.concatenate([values.ravel() for values in want])
    return [f"scaled NVFP4: {way} differs" for way, got in zip(("decoded", "factored"), flat) if not same_bits(got, want)]


def main():
    rng = np.random.default_rng(20240611)
    tensors = [(f"random.{kind}", kind, random_blocks(rng, kind)) for kind in TYPES]
    expected = [dequantize(blocks, kind).ravel() for _, kind, blocks in tensors]
    for kind in ("F16", "BF16"):
        tensors.append((f"random.{kind}", kind, float_bits(rng, kind)))
        expected.append(dequantize(tensors[-1][2].view(np.uint16) if kind == "F16" else tensors[-1][2], kind).ravel())
    bad = []
    with folder() as where:
        for (name, _, _), want, (decoded, factored) in zip(tensors, expected, decode(where, tensors)):
            bad += [f"{name}: decode() differs"] * (not same_bits(decoded, want))
            bad += [f"{name}: the decoded form differs"] * (not same_bits(factored, want))
    bad += scaled(rng)
    sys.exit("\n".join(bad) or 0)


main()
