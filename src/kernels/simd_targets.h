// Highway targets of the kernels. Include before hwy/foreach_target.h.
//
// To limit compile time, there is one target per kind of machine: AVX2 and AVX-512 ("AVX3") on x86,
// NEON on Arm, and portable code (EMU128) everywhere. x86 processors older than 2013 use portable
// code.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
