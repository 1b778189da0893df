// Enumerations: data types, reduce operations, collectives.
//
// Each value has one spelling in C++, C, the command line, JSON and Python: to_string(Dtype::bf16)
// returns "bf16", and parse_dtype("bf16") returns Dtype::bf16. All functions here are local and may
// be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "unisono/export.hpp"

namespace unisono {

// Element types. `boolean` is one byte, 0 or 1, spelt "bool".
enum class Dtype : std::uint8_t {
  i8,
  u8,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  f32,
  f64,
  boolean
};
inline constexpr int kDtypeCount = 13;

// Reduce operations. `avg` is the sum divided by the number of ranks:
// - Integers of up to 32 bits are summed in 32 or 64 bits. 64-bit sums wrap. The mean truncates
//   towards zero.
// - Floats of fewer than 32 bits are summed in f32, and the mean is rounded once. In host memory,
//   no mean of floats overflows, because f32 and f64 inputs are first scaled by 2^-k. The scaling
//   rounds inputs below the number of ranks times the least normal number.
//
// `premul_sum` multiplies inputs by a scalar before the sum. `user` is the caller's function.
enum class ReduceOp : std::uint8_t {
  sum,
  prod,
  min,
  max,
  avg,
  band,
  bor,
  bxor,
  land,
  lor,
  lxor,
  premul_sum,
  user
};
inline constexpr int kReduceOpCount = 13;

enum class Collective : std::uint8_t {  // The collective operations; rules.h has their shapes.
  broadcast,
  scatter,
  gather,
  reduce,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  barrier,
  scatter_v,
  gather_v,
  all_gather_v,
  reduce_scatter_v,
  all_to_all_v,
  scan,
  exclusive_scan
};
inline constexpr int kCollectiveCount = 16;  // values of Collective

// Returns the bytes of one element.
constexpr std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::i8:
    case Dtype::u8:
    case Dtype::f8e4m3:
    case Dtype::f8e5m2:
    case Dtype::boolean:
      return 1;
    case Dtype::f16:
    case Dtype::bf16:
      return 2;
    case Dtype::i32:
    case Dtype::u32:
    case Dtype::f32:
      return 4;
    case Dtype::i64:
    case Dtype::u64:
    case Dtype::f64:
      return 8;
  }
  return 0;
}

// to_string() returns the spelling of a value; parse_*() returns the value, or nothing for an
// unknown spelling.
UNISONO_EXPORT std::string_view to_string(Dtype dtype);
UNISONO_EXPORT std::string_view to_string(ReduceOp op);
UNISONO_EXPORT std::string_view to_string(Collective collective);
UNISONO_EXPORT std::optional<Dtype> parse_dtype(std::string_view text);
UNISONO_EXPORT std::optional<ReduceOp> parse_reduce_op(std::string_view text);
UNISONO_EXPORT std::optional<Collective> parse_collective(std::string_view text);

// Storage types for the formats that C++20 lacks. They hold bits, and convert to and from float
// with round-to-nearest-even. Only reductions compute with these types.
struct f16 {
  std::uint16_t bits = 0;
};
struct bf16 {
  std::uint16_t bits = 0;
};
struct f8e4m3 {
  std::uint8_t bits = 0;
};  // OCP E4M3: no infinity, overflow gives NaN
struct f8e5m2 {
  std::uint8_t bits = 0;
};  // OCP E5M2: IEEE-like, overflow gives infinity

UNISONO_EXPORT float to_float(f16 value);      // exact
UNISONO_EXPORT float to_float(bf16 value);     // exact
UNISONO_EXPORT float to_float(f8e4m3 value);   // exact
UNISONO_EXPORT float to_float(f8e5m2 value);   // exact
UNISONO_EXPORT f16 to_f16(float value);        // rounds to nearest, ties to even
UNISONO_EXPORT bf16 to_bf16(float value);      // rounds to nearest, ties to even
UNISONO_EXPORT f8e4m3 to_f8e4m3(float value);  // rounds to nearest; overflow gives NaN
UNISONO_EXPORT f8e5m2 to_f8e5m2(float value);  // rounds to nearest; overflow gives infinity

// The Dtype of a C++ type. Only the types above, the fixed-width arithmetic types, and `long` and
// `long long` of 64 bits have a Dtype.
template <typename T>
inline constexpr std::optional<Dtype> kDtypeOf = std::nullopt;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<std::int8_t> = Dtype::i8;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<std::uint8_t> = Dtype::u8;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<std::byte> = Dtype::u8;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<std::int32_t> = Dtype::i32;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<std::uint32_t> = Dtype::u32;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<long> =
    sizeof(long) == 8 ? std::optional(Dtype::i64) : std::nullopt;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<unsigned long> =
    sizeof(long) == 8 ? std::optional(Dtype::u64) : std::nullopt;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<long long> = Dtype::i64;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<unsigned long long> = Dtype::u64;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<f16> = Dtype::f16;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<bf16> = Dtype::bf16;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<f8e4m3> = Dtype::f8e4m3;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<f8e5m2> = Dtype::f8e5m2;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<float> = Dtype::f32;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<double> = Dtype::f64;
template <>
inline constexpr std::optional<Dtype> kDtypeOf<bool> = Dtype::boolean;

}  // namespace unisono
