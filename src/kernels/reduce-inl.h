// Loops of the reductions: one pass reads all sources and writes all targets. Compiled once for
// every SIMD target.
//
// The loops load a vector of every source before storing the same position of a target, so a target
// may be a source.
#if defined(UNISONO_KERNELS_REDUCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_KERNELS_REDUCE_INL_H
#undef UNISONO_KERNELS_REDUCE_INL_H
#else
#define UNISONO_KERNELS_REDUCE_INL_H
#endif

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/f8-inl.h"
#include "kernels/formats-inl.h"
#include "kernels/kernels.h"
#include "kernels/memory-inl.h"
#include "kernels/narrow-inl.h"
#include "kernels/ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Arguments {
  void* const* targets;
  std::size_t target_count;
  const void* const* sources;
  std::size_t source_count;
  SourceScale scale = {};  // used by scaled sums
};

inline constexpr std::size_t kLine = 64;

HWY_INLINE std::byte* target_at(const Arguments& arguments, std::size_t target,
                                std::size_t offset) {
  return static_cast<std::byte*>(arguments.targets[target]) + offset;
}
HWY_INLINE const std::byte* source_at(const Arguments& arguments, std::size_t source,
                                      std::size_t offset) {
  return static_cast<const std::byte*>(arguments.sources[source]) + offset;
}

// Loops over elements [begin, end). kSources: number of sources, or 0 if unknown at compile time.
template <class Format, class Op, std::size_t kSources, bool kOneTarget, bool kStreaming,
          bool kScaled = false>
class Sweep {
 public:
  static HWY_INLINE void run(const Arguments& arguments, std::size_t begin, std::size_t end) {
    const std::size_t lanes = hn::Lanes(D());
    std::size_t i = begin;
    for (; end - i >= Format::kUnroll * lanes; i += Format::kUnroll * lanes) {
      step<Format::kUnroll>(arguments, i);
    }
    for (; end - i >= lanes; i += lanes) {
      step<1>(arguments, i);
    }
    if (!kStreaming && i != end) {
      tail(arguments, i, end - i);
    }
  }

 private:
  using D = typename Format::D;
  using Raw = typename Format::Raw;
  using Acc = typename Format::Acc;
  static constexpr std::size_t kSize = sizeof(typename Format::Lane);

  static HWY_INLINE std::size_t source_count(const Arguments& arguments) {
    return kSources != 0 ? kSources : arguments.source_count;
  }

  static HWY_INLINE Acc decode(const Arguments& arguments, std::size_t source, Raw raw) {
    const Acc value = Format::template decode<Op>(raw);
    if constexpr (kScaled) {
      const bool scaled = (arguments.scale.sources >> source & 1U) != 0;
      return Format::template combine<ProdOp>(
          value, Format::broadcast(scaled ? arguments.scale.factor : 1.0));
    } else {
      return value;
    }
  }

  template <std::size_t kUnroll>
  static HWY_INLINE void step(const Arguments& arguments, std::size_t i) {
    const std::size_t stride = hn::Lanes(D()) * kSize;
    const std::size_t sources = source_count(arguments);
    Acc acc[kUnroll];
    const std::byte* from = source_at(arguments, 0, i * kSize);
#pragma GCC unroll 4
    for (std::size_t u = 0; u < kUnroll; ++u) {
      acc[u] = decode(arguments, 0, load(D(), from + u * stride));
    }
    for (std::size_t s = 1; s < sources; ++s) {
      from = source_at(arguments, s, i * kSize);
#pragma GCC unroll 4
      for (std::size_t u = 0; u < kUnroll; ++u) {
        acc[u] = Format::template combine<Op>(acc[u],
                                              decode(arguments, s, load(D(), from + u * stride)));
      }
    }
    Raw raw[kUnroll];
#pragma GCC unroll 4
    for (std::size_t u = 0; u < kUnroll; ++u) {
      raw[u] = Format::template encode < Op, kSources == 2 > (acc[u]);
    }
    std::size_t t = 0;
    do {
      std::byte* to = target_at(arguments, t, i * kSize);
      const bool streaming = kStreaming && reinterpret_cast<std::uintptr_t>(to) % stride == 0;
#pragma GCC unroll 4
      for (std::size_t u = 0; u < kUnroll; ++u) {
        if (streaming) {
          store_streaming(D(), raw[u], to + u * stride);
        } else {
          store(D(), raw[u], to + u * stride);
        }
      }
    } while (!kOneTarget && ++t < arguments.target_count);
  }

  static HWY_INLINE void tail(const Arguments& arguments, std::size_t i, std::size_t lanes) {
    const std::size_t sources = source_count(arguments);
    Acc acc = decode(arguments, 0, load_first(D(), source_at(arguments, 0, i * kSize), lanes));
    for (std::size_t s = 1; s < sources; ++s) {
      const std::byte* from = source_at(arguments, s, i * kSize);
      acc = Format::template combine<Op>(acc, decode(arguments, s, load_first(D(), from, lanes)));
    }
    const Raw raw = Format::template encode < Op, kSources == 2 > (acc);
    std::size_t t = 0;
    do {
      store_first(D(), raw, target_at(arguments, t, i * kSize), lanes);
    } while (!kOneTarget && ++t < arguments.target_count);
  }
};

// Reduces elements [begin, end), for any number of sources and targets.
template <class Format, class Op, bool kScaled = false>
HWY_NOINLINE void reduce_cached(const Arguments& arguments, std::size_t begin, std::size_t end) {
  Sweep<Format, Op, 0, false, false, kScaled>::run(arguments, begin, end);
}

// Reduces with streaming stores. Streaming needs a line boundary of targets[0] at an element
// boundary; other targets stream only if they have the same alignment.
template <class Format, class Op, std::size_t kSources, bool kScaled = false>
HWY_NOINLINE void reduce_streaming(const Arguments& arguments, std::size_t count) {
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(arguments.targets[0]) % kLine;
  std::size_t head = (kLine - past) % kLine / kSize;
  if (past % kSize != 0 || head > count) {
    head = count;
  }
  reduce_cached<Format, Op, kScaled>(arguments, 0, head);
  // Streams only whole lines, so that no partial vector remains.
  const std::size_t lines = (count - head) / (kLine / kSize) * (kLine / kSize);
  Sweep<Format, Op, kSources, false, true, kScaled>::run(arguments, head, head + lines);
  reduce_cached<Format, Op, kScaled>(arguments, head + lines, count);
}

// kOften: generate specialised code for common numbers of sources and targets.
template <class Format, class Op, bool kOften>
HWY_NOINLINE void reduce_other(const Arguments& arguments, std::size_t count, Store store) {
  if (arguments.source_count == 1) {
    for (std::size_t t = 0; t < arguments.target_count; ++t) {
      if (arguments.targets[t] != arguments.sources[0]) {
        copy(arguments.targets[t], arguments.sources[0], count * sizeof(typename Format::Lane),
             store);
      }
    }
    return;
  }
  if constexpr (kOften) {
    if (store == Store::streaming && arguments.source_count == 2) {
      return reduce_streaming<Format, Op, 2>(arguments, count);
    }
    if (store == Store::cached && arguments.source_count == 3 && arguments.target_count == 1) {
      return Sweep<Format, Op, 3, true, false>::run(arguments, 0, count);
    }
    if (store == Store::cached && arguments.source_count == 4 && arguments.target_count == 1) {
      return Sweep<Format, Op, 4, true, false>::run(arguments, 0, count);
    }
  }
  if (store == Store::streaming) {
    return reduce_streaming<Format, Op, 0>(arguments, count);
  }
  reduce_cached<Format, Op>(arguments, 0, count);
}

// A ReduceFunction.
template <class Format, class Op, bool kOften = false>
void reduce(void* const* targets, int target_count, const void* const* sources, int source_count,
            std::size_t count, Store store) {
  assert(target_count >= 1 && source_count >= 1 && source_count <= kMaxSources);
  const Arguments arguments{targets,
                            static_cast<std::size_t>(target_count),
                            sources,
                            static_cast<std::size_t>(source_count),
                            {}};
  if (source_count == 2 && target_count == 1 && store == Store::cached) {
    return Sweep<Format, Op, 2, true, false>::run(arguments, 0, count);
  }
  reduce_other<Format, Op, kOften>(arguments, count, store);
}

// A ScaledSumFunction.
template <class Format>
void scaled_sum(void* const* targets, int target_count, const void* const* sources,
                int source_count, std::size_t count, Store store, SourceScale scale) {
  assert(target_count >= 1 && source_count >= 2 && source_count <= kMaxSources);
  const Arguments arguments{targets, static_cast<std::size_t>(target_count), sources,
                            static_cast<std::size_t>(source_count), scale};
  if (source_count == 2 && store == Store::streaming) {
    return reduce_streaming<Format, SumOp, 2, true>(arguments, count);
  }
  if (source_count == 2 && target_count == 1) {
    return Sweep<Format, SumOp, 2, true, false, true>::run(arguments, 0, count);
  }
  if (store == Store::streaming) {
    return reduce_streaming<Format, SumOp, 0, true>(arguments, count);
  }
  reduce_cached<Format, SumOp, true>(arguments, 0, count);
}

// Returns the function of an operation for a float format.
template <class Format>
ReduceFunction find_float(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return reduce<Format, SumOp, true>;
    case ReduceOp::prod:
      return reduce<Format, ProdOp>;
    case ReduceOp::min:
      return reduce<Format, MinOp>;
    case ReduceOp::max:
      return reduce<Format, MaxOp>;
    default:
      return nullptr;
  }
}

// Returns the function of an operation for integers as wide as the unsigned T. Only min and max
// depend on `is_signed`; all other operations give the same bits.
template <typename T>
ReduceFunction find_integer(ReduceOp op, bool is_signed) {
  using S = std::make_signed_t<T>;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return reduce<Native<T>, SumOp, true>;
    case ReduceOp::prod:
      return reduce<Native<T>, ProdOp>;
    case ReduceOp::min:
      return is_signed ? reduce<Native<S>, MinOp> : reduce<Native<T>, MinOp>;
    case ReduceOp::max:
      return is_signed ? reduce<Native<S>, MaxOp> : reduce<Native<T>, MaxOp>;
    case ReduceOp::band:
      return reduce<Native<T>, AndOp>;
    case ReduceOp::bor:
      return reduce<Native<T>, OrOp>;
    case ReduceOp::bxor:
      return reduce<Native<T>, XorOp>;
    case ReduceOp::land:
      return reduce<Logical<T>, AndOp>;
    case ReduceOp::lor:
      return reduce<Logical<T>, OrOp>;
    case ReduceOp::lxor:
      return reduce<Logical<T>, XorOp>;
    case ReduceOp::user:
      return nullptr;
  }
  return nullptr;
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
