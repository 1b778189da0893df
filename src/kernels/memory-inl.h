// Loads and stores whole vectors or their first lanes, at any alignment. Compiled once for every
// SIMD target.
#if defined(UNISONO_KERNELS_MEMORY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_KERNELS_MEMORY_INL_H
#undef UNISONO_KERNELS_MEMORY_INL_H
#else
#define UNISONO_KERNELS_MEMORY_INL_H
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// True if a masked load or store of T is one instruction that never touches other lanes.
template <typename T>
inline constexpr bool kMasked =
    HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, std::byte* to) {
  hn::StoreU(value, d, reinterpret_cast<hn::TFromD<D>*>(to));
}

// REQUIRES: `to` is aligned to the vector. A vector shorter than 16 bytes is stored normally,
// because Highway would stream all 16 bytes.
template <class D>
HWY_INLINE void store_streaming(D d, hn::Vec<D> value, std::byte* to) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) >= 16) {
    hn::Stream(value, d, reinterpret_cast<hn::TFromD<D>*>(to));
  } else {
    store(d, value, to);
  }
}

// Loads the first `lanes` lanes, fewer than a whole vector. The other lanes are zero.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_first(D d, const std::byte* from, std::size_t lanes) {
  if constexpr (kMasked<T>) {
    return hn::MaskedLoad(hn::FirstN(d, lanes), d, reinterpret_cast<const T*>(from));
  } else {
    alignas(64) T whole[hn::MaxLanes(D())] = {};
    std::memcpy(whole, from, lanes * sizeof(T));
    return hn::Load(d, whole);
  }
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_first(D d, hn::Vec<D> value, std::byte* to, std::size_t lanes) {
  if constexpr (kMasked<T>) {
    hn::BlendedStore(value, hn::FirstN(d, lanes), d, reinterpret_cast<T*>(to));
  } else {
    alignas(64) T whole[hn::MaxLanes(D())];
    hn::Store(value, d, whole);
    std::memcpy(to, whole, lanes * sizeof(T));
  }
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
