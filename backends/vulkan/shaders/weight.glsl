// Weights as they lie on the device (forms.hpp): tiles of 32 rows. Codes: [tile][chunk of 16 bytes a row][row of the tile], a chunk holds
// kChunk columns, the first in the lowest bits. Numbers of groups: [tile][group][scale, minimum?, zero point?][row of the tile], F32.
// Each step is rounded to F32, as mekik_form says. Constants 1 to 6 say what the form has.
layout(constant_id = 1) const uint kGroup = 32;   // columns under one scale
layout(constant_id = 2) const uint kMin = 0;      // minima
layout(constant_id = 3) const uint kZero = 0;     // 1: one zero point, p.f0; 2: one a group
layout(constant_id = 4) const uint kLookup = 0;   // codes count entries of a table at p.w2
layout(constant_id = 5) const uint kRound = 0;    // what weights are rounded to (mekik_num), 0: nothing
layout(constant_id = 6) const uint kTensorScale = 0;  // a factor for each matrix, at p.i5
const uint kPlanes = 1u + kMin + (kZero == 2u ? 1u : 0u);

float word(uint i) { return uintBitsToFloat(imageLoad(W1, int(i)).x); }
