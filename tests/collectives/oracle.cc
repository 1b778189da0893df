// The values of the reference: inputs, sums, and the permitted errors of results.
#include "oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

namespace unisono::testing {
namespace {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
};

bool is_float(Dtype dtype) {
  return dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f8e4m3 ||
         dtype == Dtype::f8e5m2 || dtype == Dtype::f32 || dtype == Dtype::f64;
}

FloatFormat format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return {5, 10};
    case Dtype::bf16:
      return {8, 7};
    case Dtype::f8e4m3:
      return {4, 3};
    case Dtype::f8e5m2:
      return {5, 2};
    case Dtype::f32:
      return {8, 23};
    default:
      return {11, 52};
  }
}

// Finite values only: the inputs and results of these tests have no others.
double decode(Dtype dtype, std::uint64_t bits) {
  const FloatFormat format = format_of(dtype);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const std::uint64_t rest = bits >> format.mantissa_bits;
  const auto exponent = static_cast<int>(rest & ((std::uint64_t{1} << format.exponent_bits) - 1));
  const bool negative = (rest >> format.exponent_bits & 1) != 0;
  const double fraction = std::ldexp(static_cast<double>(mantissa), -format.mantissa_bits);
  const double size =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return negative ? -size : size;
}

// Returns the nearest value of a narrow format, ties to even. It is found by bisection, because the
// bits of positive floats are ordered like their values.
std::uint64_t nearest(Dtype dtype, double value) {
  const FloatFormat format = format_of(dtype);
  const int width = format.exponent_bits + format.mantissa_bits;
  const double size = std::fabs(value);
  std::uint64_t low = 0;
  std::uint64_t high = (std::uint64_t{1} << width) - 1;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (decode(dtype, middle) <= size ? low : high) = middle;
  }
  const double below = size - decode(dtype, low);
  const double above = decode(dtype, high) - size;
  const bool up = above < below || (above == below && (low & 1) != 0);
  return (up ? high : low) | (std::signbit(value) ? std::uint64_t{1} << width : 0);
}

int bits_of(Dtype dtype) {
  return static_cast<int>(size_of(dtype)) * 8;
}

std::uint64_t mask_of(Dtype dtype) {
  return bits_of(dtype) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits_of(dtype)) - 1;
}

bool is_signed(Dtype dtype) {
  return dtype == Dtype::i8 || dtype == Dtype::i32 || dtype == Dtype::i64;
}

std::int64_t as_signed(Dtype dtype, std::uint64_t value) {
  const int unused = 64 - bits_of(dtype);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

bool less(Dtype dtype, std::uint64_t a, std::uint64_t b) {
  return is_signed(dtype) ? as_signed(dtype, a) < as_signed(dtype, b) : a < b;
}

std::uint64_t combine_bool(ReduceOp op, std::uint64_t a, std::uint64_t b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor:
    case ReduceOp::lor:
      return a | b;
    case ReduceOp::bxor:
    case ReduceOp::lxor:
      return a ^ b;
    default:
      return a & b;
  }
}

std::uint64_t combine_integers(Dtype dtype, ReduceOp op, std::uint64_t a, std::uint64_t b) {
  if (dtype == Dtype::boolean) {
    return combine_bool(op, a, b);
  }
  switch (op) {
    case ReduceOp::prod:
      return a * b & mask_of(dtype);
    case ReduceOp::min:
      return less(dtype, b, a) ? b : a;
    case ReduceOp::max:
      return less(dtype, a, b) ? b : a;
    case ReduceOp::band:
      return a & b;
    case ReduceOp::bor:
      return a | b;
    case ReduceOp::bxor:
      return a ^ b;
    case ReduceOp::land:
      return a != 0 && b != 0 ? 1 : 0;
    case ReduceOp::lor:
      return a != 0 || b != 0 ? 1 : 0;
    case ReduceOp::lxor:
      return (a != 0) != (b != 0) ? 1 : 0;
    default:
      return (a + b) & mask_of(dtype);
  }
}

std::uint64_t reduce_integers(const Case& one, std::size_t index) {
  const auto input = [&](int rank) {
    const std::uint64_t bits = input_bits(one, rank, index);
    return one.op == ReduceOp::premul_sum
               ? bits * static_cast<std::uint64_t>(kPremulInteger) & mask_of(one.dtype)
               : bits;
  };
  const auto n = static_cast<std::uint64_t>(one.ranks);
  if (one.op == ReduceOp::avg && bits_of(one.dtype) < 64) {  // 64 bits hold the sum
    std::int64_t sum = 0;
    for (int rank = 0; rank < one.ranks; ++rank) {
      sum += is_signed(one.dtype) ? as_signed(one.dtype, input(rank))
                                  : static_cast<std::int64_t>(input(rank));
    }
    return static_cast<std::uint64_t>(sum / static_cast<std::int64_t>(n)) & mask_of(one.dtype);
  }
  std::uint64_t result = input(0);
  for (int rank = 1; rank < one.ranks; ++rank) {
    result = combine_integers(one.dtype, one.op, result, input(rank));
  }
  if (one.ranks == 1 &&
      (one.op == ReduceOp::land || one.op == ReduceOp::lor || one.op == ReduceOp::lxor)) {
    result = result != 0 ? 1 : 0;
  }
  if (one.op == ReduceOp::avg) {
    result = is_signed(one.dtype) ? static_cast<std::uint64_t>(as_signed(one.dtype, result) /
                                                               static_cast<std::int64_t>(n)) &
                                        mask_of(one.dtype)
                                  : result / n;
  }
  return result;
}

std::uint64_t identity_bits(Dtype dtype, ReduceOp op) {
  const std::uint64_t sign = std::uint64_t{1} << (bits_of(dtype) - 1);
  std::uint64_t one = 1;
  std::uint64_t greatest = is_signed(dtype) ? sign - 1 : mask_of(dtype);
  std::uint64_t least = is_signed(dtype) ? sign : 0;
  std::uint64_t every = mask_of(dtype);
  if (dtype == Dtype::boolean) {
    greatest = every = 1;
  } else if (is_float(dtype)) {
    const FloatFormat format = format_of(dtype);
    const auto bias = (std::uint64_t{1} << (format.exponent_bits - 1)) - 1;
    one = bias << format.mantissa_bits;
    // Infinity, or the greatest number of a format without infinity.
    greatest = dtype == Dtype::f8e4m3 ? 0x7e : (2 * bias + 1) << format.mantissa_bits;
    least = sign | greatest;
  }
  switch (op) {
    case ReduceOp::prod:
    case ReduceOp::land:
      return one;
    case ReduceOp::min:
      return greatest;
    case ReduceOp::max:
      return least;
    case ReduceOp::band:
      return every;
    default:
      return 0;
  }
}

struct FloatResult {
  double value = 0;  // in double
  double bound = 0;
  bool exact = false;
  std::uint64_t bits = 0;  // if it is exact
};

template <typename Accumulator>
Accumulator accumulate(const Case& one, std::size_t index) {
  auto result = static_cast<Accumulator>(decode(one.dtype, input_bits(one, 0, index)));
  for (int rank = 1; rank < one.ranks; ++rank) {
    const auto next = static_cast<Accumulator>(decode(one.dtype, input_bits(one, rank, index)));
    result = one.op == ReduceOp::prod ? result * next : result + next;
  }
  return result;
}

bool in_rank_order(const Case& one) {
  return (one.algorithm == "flat" || one.algorithm == "one_shot") &&
         (one.op == ReduceOp::sum || one.op == ReduceOp::prod);
}

FloatResult reduce_floats(const Case& one, std::size_t index) {
  FloatResult result;
  double magnitude = 0;
  for (int rank = 0; rank < one.ranks; ++rank) {
    const double x = decode(one.dtype, input_bits(one, rank, index));
    magnitude += std::fabs(x);
    if (rank == 0) {
      result.value = x;
    } else if (one.op == ReduceOp::prod) {
      result.value *= x;
    } else if (one.op == ReduceOp::min || one.op == ReduceOp::max) {
      result.value = (one.op == ReduceOp::min) == (x < result.value) ? x : result.value;
    } else {
      result.value += x;
    }
  }
  if (one.op == ReduceOp::min || one.op == ReduceOp::max) {
    return result;
  }
  const double scale = one.op == ReduceOp::avg          ? 1.0 / one.ranks
                       : one.op == ReduceOp::premul_sum ? kPremulFloat
                                                        : 1.0;
  result.value *= scale;
  magnitude = one.op == ReduceOp::prod ? std::fabs(result.value) : magnitude * scale;
  const FloatFormat format = format_of(one.dtype);
  const double unit = std::ldexp(1.0, -format.mantissa_bits - 1);
  const double tiny = std::ldexp(1.0, 2 - (1 << (format.exponent_bits - 1)) - format.mantissa_bits);
  result.bound = (one.ranks + 1) * (unit * magnitude * std::pow(1 + unit, one.ranks) + tiny);
  if (in_rank_order(one)) {
    result.exact = true;
    if (one.dtype == Dtype::f64) {
      result.bits = std::bit_cast<std::uint64_t>(accumulate<double>(one, index));
    } else if (one.dtype == Dtype::f32) {
      result.bits = std::bit_cast<std::uint32_t>(accumulate<float>(one, index));
    } else {
      result.bits = nearest(one.dtype, static_cast<double>(accumulate<float>(one, index)));
    }
  }
  return result;
}

std::string hex(std::uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

std::string expected_bits(std::uint64_t got, std::uint64_t wanted) {
  return got == wanted ? "" : hex(got) + ", not " + hex(wanted);
}

std::string check_float(const Case& one, const FloatResult& wanted, std::uint64_t got) {
  if (wanted.exact) {
    const std::string text = expected_bits(got, wanted.bits);
    return text.empty() ? text : text + " (rank order)";
  }
  const double value = decode(one.dtype, got);
  if (std::fabs(value - wanted.value) <= wanted.bound) {
    return "";
  }
  char text[96];
  std::snprintf(text, sizeof(text), "%.17g, not %.17g +- %.3g", value, wanted.value, wanted.bound);
  return text;
}

}  // namespace

double premul_factor(Dtype dtype) {
  return is_float(dtype) ? kPremulFloat : kPremulInteger;
}

std::uint64_t input_bits(const Case& one, int rank, std::size_t index) {
  const std::uint64_t h =
      scramble(scramble(one.seed * 64 + static_cast<std::uint64_t>(rank)) + index);
  if (one.dtype == Dtype::boolean) {
    return h & 1;
  }
  if (!is_float(one.dtype)) {
    const bool logical =
        one.op == ReduceOp::land || one.op == ReduceOp::lor || one.op == ReduceOp::lxor;
    return logical && h % 3 == 0 ? 0 : (h >> 3) & mask_of(one.dtype);
  }
  // Magnitudes in [0.5, 2): no sum or product of nine overflows in any format.
  const FloatFormat format = format_of(one.dtype);
  const auto bias = (std::uint64_t{1} << (format.exponent_bits - 1)) - 1;
  const std::uint64_t mantissa = (h >> 2) & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const std::uint64_t exponent = bias - ((h >> 1) & 1);
  return (h & 1) << (format.exponent_bits + format.mantissa_bits) |
         exponent << format.mantissa_bits | mantissa;
}

std::string check_element(const Case& whole, const Origin& origin, std::uint64_t got) {
  if (origin.kind == Origin::Kind::copy) {
    return expected_bits(got, input_bits(whole, origin.rank, origin.index));
  }
  if (origin.terms == 0) {
    return expected_bits(got, identity_bits(whole.dtype, whole.op));
  }
  Case one = whole;
  one.ranks = origin.terms;
  if (!is_float(one.dtype)) {
    return expected_bits(got, reduce_integers(one, origin.index));
  }
  return check_float(one, reduce_floats(one, origin.index), got);
}

}  // namespace unisono::testing
