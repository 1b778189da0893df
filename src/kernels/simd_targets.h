// Which Highway targets the kernels are compiled for. Include before hwy/foreach_target.h.
//
// One target per kind of machine that is met in practice, to bound compile time: SSE4, AVX2 and
// AVX-512 ("AVX3") on x86, NEON on Arm, and portable code (EMU128) everywhere.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
