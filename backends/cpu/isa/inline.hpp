// What every kernel file needs: nothing here may have external linkage outside the level's namespace, or the linker could pick code of
// one instruction set for another. For the same reason kernel files use no templates of the standard library.
#pragma once
#define MK_INLINE inline __attribute__((always_inline))
