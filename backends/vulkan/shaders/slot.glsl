// Recurrences work on a copy of the states that a step starts from (y of slot_load), since a slot may be one sequence's start and where
// another is saved. A slot: k numbers, from w0 + slot * k on in the page of the pool. i3: where sequences start; i4: the slot to save to
// after a token, or -1.
uint start_of(uint seq) { return uint(bt[uint(p.i3) + seq]); }
int saved_at(uint token) { return bt[uint(p.i4) + token]; }
