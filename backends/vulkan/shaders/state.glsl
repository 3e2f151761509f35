// Where the rows of a state lie: by block, or, of rows of this step alone, one after the other. A row: heads of two parts, keys and values;
// a part: numbers from its start on, padded with zeros to 16 bytes. In forms of heads the last word is the scale, F32.
// Push: w0 texel of the state in its page, w1 texels of a row, w2 texels of a head, w3 texels of its first part, k tokens of a block,
// i0 .. i4: in the batch, the table of blocks and its width, the sequence of a token, where sequences start, their contexts.
layout(constant_id = 0) const uint kForm = 1;   // 0 F32, 1 F16, 2 BF16, 3 codes of 8 bits, 4 codes of 4
layout(constant_id = 1) const uint kPlain = 0;  // rows of this step, from the first of a sequence on

const uint kNumbers = kForm == 0u ? 4u : kForm == 3u ? 16u : kForm == 4u ? 32u : 8u;  // of a texel

uint sequence_of(uint token) { return uint(bt[uint(p.i2) + token]); }
uint start_of(uint seq) { return uint(bt[uint(p.i3) + seq]); }
uint context_of(uint seq) { return kPlain != 0u ? 0u : uint(bt[uint(p.i4) + seq]); }
// The first texel of a row of a sequence.
uint row_texel(uint seq, uint place) {
  if (kPlain != 0u) return p.w0 + (start_of(seq) + place) * p.w1;
  uint block = uint(bt[uint(p.i0) + seq * uint(p.i1) + place / p.k]);
  return p.w0 + (block * p.k + place % p.k) * p.w1;
}
