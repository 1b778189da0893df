// The Highway targets of the kernels. Include before hwy/foreach_target.h.
//
// One target per kind of machine in use, to bound compile time: AVX2 and AVX-512 ("AVX3") on x86,
// NEON on Arm, and portable code (EMU128) everywhere, which also serves x86 processors older than
// 2013.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
