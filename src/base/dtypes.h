// The properties of each data type, in one table.
//
// A new data type needs a value in unisono/types.hpp and in types.h, a row and a C++ type here, and
// reductions in src/kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/collectives.h"
#include "unisono/types.hpp"

namespace unisono {

enum class DtypeKind : std::uint8_t { integer, floating, boolean };

struct DtypeTraits {
  Dtype dtype;
  std::string_view name;
  std::string_view nccl;         // name in nccl-tests
  std::string_view safetensors;  // name in that file format
  DtypeKind kind;
  Dtype sum;              // type in which avg sums; wider if possible, against overflow
  int exponent_bits = 0;  // of floats
  int mantissa_bits = 0;
  bool has_infinity = true;  // false: the largest code is NaN, and overflow becomes NaN
};

inline constexpr std::array<DtypeTraits, kDtypeCount> kDtypes = {{
    {Dtype::i8, "i8", "int8", "I8", DtypeKind::integer, Dtype::i32},
    {Dtype::u8, "u8", "uint8", "U8", DtypeKind::integer, Dtype::u32},
    {Dtype::i32, "i32", "int32", "I32", DtypeKind::integer, Dtype::i64},
    {Dtype::u32, "u32", "uint32", "U32", DtypeKind::integer, Dtype::u64},
    {Dtype::i64, "i64", "int64", "I64", DtypeKind::integer, Dtype::i64},
    {Dtype::u64, "u64", "uint64", "U64", DtypeKind::integer, Dtype::u64},
    {Dtype::f16, "f16", "half", "F16", DtypeKind::floating, Dtype::f32, 5, 10},
    {Dtype::bf16, "bf16", "bfloat16", "BF16", DtypeKind::floating, Dtype::f32, 8, 7},
    {Dtype::f8e4m3, "f8e4m3", "f8e4m3", "F8_E4M3", DtypeKind::floating, Dtype::f32, 4, 3, false},
    {Dtype::f8e5m2, "f8e5m2", "f8e5m2", "F8_E5M2", DtypeKind::floating, Dtype::f32, 5, 2},
    {Dtype::f32, "f32", "float", "F32", DtypeKind::floating, Dtype::f32, 8, 23},
    {Dtype::f64, "f64", "double", "F64", DtypeKind::floating, Dtype::f64, 11, 52},
    {Dtype::boolean, "bool", "bool", "BOOL", DtypeKind::boolean, Dtype::boolean},
}};

// The C++ types, in the order of Dtype.
using DtypeTypes = std::tuple<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t,
                              std::uint64_t, f16, bf16, f8e4m3, f8e5m2, float, double, bool>;
template <Dtype kDtype>
using TypeOf = std::tuple_element_t<static_cast<std::size_t>(kDtype), DtypeTypes>;

// Rounds `value` to the narrow float T, with the conversion functions of unisono/types.hpp.
template <class T>
T narrowed(float value);
template <>
inline f16 narrowed(float value) {
  return to_f16(value);
}
template <>
inline bf16 narrowed(float value) {
  return to_bf16(value);
}
template <>
inline f8e4m3 narrowed(float value) {
  return to_f8e4m3(value);
}
template <>
inline f8e5m2 narrowed(float value) {
  return to_f8e5m2(value);
}

// REQUIRES: a value of the enumeration.
constexpr const DtypeTraits& traits_of(Dtype dtype) {
  return kDtypes.at(static_cast<std::size_t>(dtype));
}
constexpr bool is_float(Dtype dtype) {
  return traits_of(dtype).kind == DtypeKind::floating;
}
constexpr bool is_integer(Dtype dtype) {
  return traits_of(dtype).kind == DtypeKind::integer;
}

// Returns the type in which a call's elements are moved and summed. For avg, integers of up to 32
// bits are widened so that they hold the sum over 2^24 ranks, and floats narrower than 32 bits
// become f32.
constexpr Dtype moved_dtype(Collective collective, Dtype dtype, ReduceOp op) {
  return reduces(collective) && op == ReduceOp::avg ? traits_of(dtype).sum : dtype;
}

// Calls `action` with the std::integral_constant of the type, and returns its result. REQUIRES: a
// value of the enumeration.
template <int kFirst = 0, class Action>
constexpr auto with_dtype(Dtype dtype, const Action& action) {
  constexpr auto kDtype = static_cast<Dtype>(kFirst);
  if constexpr (kFirst + 1 < kDtypeCount) {
    if (dtype != kDtype) {
      return with_dtype<kFirst + 1>(dtype, action);
    }
  }
  return action(std::integral_constant<Dtype, kDtype>());
}

namespace detail {

template <std::size_t... kAll>
constexpr bool agree(std::index_sequence<kAll...>) {
  return ((kDtypes.at(kAll).dtype == static_cast<Dtype>(kAll) &&
           kDtypeOf<std::tuple_element_t<kAll, DtypeTypes>> == static_cast<Dtype>(kAll) &&
           sizeof(std::tuple_element_t<kAll, DtypeTypes>) == size_of(static_cast<Dtype>(kAll))) &&
          ...);
}
static_assert(std::tuple_size_v<DtypeTypes> == kDtypeCount &&
              agree(std::make_index_sequence<kDtypeCount>()));

}  // namespace detail
}  // namespace unisono
