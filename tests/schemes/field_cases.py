"""Blocks that others decoded wrongly, with their values worked out by hand: B112 (scales, lanes, second blocks) and B113 (nibbles)."""
import sys

from common import decode, folder, np


def q4_k():
    """d = 1, dmin = 0.5, scale bytes 01 to 0c."""
    low, high = np.arange(128) & 15, (7 * np.arange(128)) & 15
    return bytes.fromhex("003c0038") + bytes(range(1, 13)) + (low | high << 4).astype(np.uint8).tobytes()


def q6_k():
    """Scales -8 to 7, d = 0.125."""
    ql, qh = 3 * np.arange(128) & 255, 5 * np.arange(64) & 255
    return ql.astype(np.uint8).tobytes() + qh.astype(np.uint8).tobytes() + np.arange(-8, 8, dtype=np.int8).tobytes() + bytes.fromhex("0030")


def check_q4_k(row):
    groups = row.reshape(-1, 8, 32)
    assert len(groups) == 2, "the second block of a row counts, too"
    for block in groups:
        assert block.sum(1).tolist() == [160, 384, 608, 832, 2160, 2400, 2640, 2880], block.sum(1)
        assert block[0, :2].tolist() == [-2.5, -1.5], block[0, :2]


def check_q6_k(row):
    for block in row.reshape(2, 256):
        assert block[:8].tolist() == [32, 13, -6, -25, 20, 1, -2, -21], block[:8]
        assert block.sum() == 290.5, block.sum()


def check_q4_0(row):
    for block in row.reshape(2, 32):
        assert block[:16].tolist() == np.arange(-4, 4, 0.5).tolist(), block
        assert block[16:].tolist() == np.arange(3.5, -4.5, -0.5).tolist(), block


def check_q8_0(row):
    for block in row.reshape(2, 32):
        assert block.tolist() == np.arange(-32, 32, 2).tolist(), block


CASES = [
    ("B112", "Q4_K", q4_k(), check_q4_k),
    ("B112", "Q6_K", q6_k(), check_q6_k),
    ("B113", "Q4_0", bytes.fromhex("0038f0e1d2c3b4a5968778695a4b3c2d1e0f"), check_q4_0),
    ("B113", "Q8_0", bytes.fromhex("0034") + np.arange(-128, 128, 8, dtype=np.int8).tobytes(), check_q8_0),
]


def main():
    # Two blocks in a row, and two rows.
    tensors = [(f"{row}.{kind}", kind, np.frombuffer(block * 4, np.uint8).reshape(2, -1).copy()) for row, kind, block, _ in CASES]
    faults = []
    with folder() as where:
        for (row, kind, _, check), ways in zip(CASES, decode(where, tensors)):
            for way, values in zip(("decoded", "from its form"), ways):
                for one in values.reshape(2, -1):
                    try:
                        check(one)
                    except AssertionError as wrong:
                        faults.append(f"{row} {kind} {way}: {wrong}")
    sys.exit("\n".join(faults) or 0)


main()
