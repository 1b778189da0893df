#include "bench/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/collectives.h"
#include "base/dtypes.h"
#include "base/identity.h"

namespace unisono::cli {
namespace {

// Converts one element type to double and back. f64, and integers below 2^53, are exact.
template <typename T>
double load(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return to_float(value);
  }
}

template <typename T>
T store(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return narrowed<T>(static_cast<float>(value));
  }
}

// Returns the largest integer that is exact (2^mantissa for a float) or does not wrap, at most
// 2^23.
double exact_limit(Dtype dtype) {
  return std::min(0x1p23, with_dtype(dtype, [](auto type) {
                    using T = TypeOf<type.value>;
                    if constexpr (std::is_integral_v<T>) {
                      return static_cast<double>(std::numeric_limits<T>::max());
                    }
                    return std::ldexp(1.0, traits_of(type.value).mantissa_bits + 1);
                  }));
}

double epsilon(Dtype dtype) {
  return std::ldexp(1.0, -1 - traits_of(dtype).mantissa_bits);
}

std::uint64_t mixed(std::uint64_t seed, int rank, std::size_t index) {
  const std::uint64_t r = static_cast<std::uint64_t>(rank) + 1;
  std::uint64_t x = (index + seed) * 0x9E3779B97F4A7C15ULL + r * 0xD1B54A32D192ED03ULL;
  x ^= x >> 29;
  return x * 0xBF58476D1CE4E5B9ULL;
}

// Returns an element of the rank before it is rounded to the type.
inline double value_at(const DataRule& rule, int rank, std::size_t index) {
  const std::uint64_t bits = mixed(rule.seed, rank, index);
  if (!rule.exact) {
    return static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-63;
  }
  if (rule.op == ReduceOp::prod) {
    // One rank has 2, the others 1: the product is 2.
    const auto n = static_cast<std::size_t>(rule.ranks);
    return (index + static_cast<std::size_t>(rank)) % n == rule.seed % n ? 2 : 1;
  }
  return static_cast<double>((bits >> 40U) & rule.mask);
}

// Returns the stored elements of a rank. There are few exact values, so each is converted only
// once.
template <typename T>
class Source {
 public:
  Source(const DataRule& rule, int rank) : rule_(rule), rank_(rank) {
    from_table_ = rule.exact && rule.op != ReduceOp::prod && rule.mask < std::size(table_);
    for (std::size_t i = 0; from_table_ && i <= rule.mask; ++i) {
      table_[i] = store<T>(static_cast<double>(i));
    }
  }
  T at(std::size_t index) const {
    return from_table_ ? table_[(mixed(rule_.seed, rank_, index) >> 40U) & rule_.mask]
                       : store<T>(value_at(rule_, rank_, index));
  }

 private:
  const DataRule& rule_;
  int rank_;
  bool from_table_ = false;
  T table_[256] = {};
};

struct Expected {
  double value = 0;
  double bound = 0;  // 0: exact
};

double combine(ReduceOp op, double a, double b) {
  const auto x = static_cast<std::uint64_t>(std::abs(a));
  const auto y = static_cast<std::uint64_t>(std::abs(b));
  switch (op) {
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::band:
      return static_cast<double>(x & y);
    case ReduceOp::bor:
      return static_cast<double>(x | y);
    case ReduceOp::bxor:
      return static_cast<double>(x ^ y);
    case ReduceOp::land:
      return a != 0 && b != 0 ? 1 : 0;
    case ReduceOp::lor:
      return a != 0 || b != 0 ? 1 : 0;
    case ReduceOp::lxor:
      return (a != 0) != (b != 0) ? 1 : 0;
    default:
      return a + b;
  }
}

// Computes the result on rank `to`.
template <typename T>
Expected reduced(const DataRule& rule, int to, std::size_t index) {
  const double factor = rule.op == ReduceOp::premul_sum ? kPremulFactor : 1.0;
  double value = 0;
  double magnitude = 0;
  int ranks = 0;
  for (int rank = 0; rank < rule.ranks; ++rank) {
    if (!contributes(rule.collective, rank, to)) {
      continue;
    }
    // Exact values are the same before and after rounding to the type.
    const double element = value_at(rule, rank, index);
    const double next = factor * (rule.exact ? element : load(store<T>(element)));
    value = ranks == 0 ? next : combine(rule.op, value, next);
    magnitude += std::abs(next);
    ++ranks;
  }
  if (ranks == 1 &&
      (rule.op == ReduceOp::land || rule.op == ReduceOp::lor || rule.op == ReduceOp::lxor)) {
    return {.value = value != 0 ? 1.0 : 0.0, .bound = 0};
  }
  const double n = ranks;
  if (rule.op == ReduceOp::avg) {
    value = is_float(rule.dtype) ? value / n : std::trunc(value / n);
    magnitude /= n;
  }
  const bool sums = rule.op == ReduceOp::sum || rule.op == ReduceOp::avg ||
                    rule.op == ReduceOp::premul_sum || rule.op == ReduceOp::prod;
  if (rule.exact || !sums) {
    return {.value = load(store<T>(value)), .bound = 0};
  }
  if (rule.op == ReduceOp::prod) {
    magnitude = 1;
  }
  return {.value = value,
          .bound = n * epsilon(rule.dtype) * magnitude + 0x1p-9 * epsilon(rule.dtype)};
}

template <typename T>
bool is_right(T got, Expected expected) {
  const double value = load(got);
  return expected.bound == 0 ? value == expected.value
                             : std::abs(value - expected.value) <= expected.bound;
}

template <typename T>
std::uint64_t check_moved(const DataRule& rule, int from, std::size_t first, std::size_t count,
                          const T* data) {
  std::uint64_t wrong = 0;
  const Source<T> source(rule, from);
  for (std::size_t i = 0; i < count; ++i) {
    const T expected = source.at(first + i);
    wrong += std::memcmp(&data[i], &expected, sizeof(T)) != 0 ? 1 : 0;
  }
  return wrong;
}

template <typename T>
std::uint64_t check_reduced(const DataRule& rule, int rank, std::size_t first, std::size_t count,
                            const T* data) {
  std::uint64_t wrong = 0;
  if (rule.collective == Collective::exclusive_scan && rank == 0) {
    const T identity = identity_of<*kDtypeOf<T>>(rule.op);
    for (std::size_t i = 0; i < count; ++i) {
      wrong += std::memcmp(&data[i], &identity, sizeof(T)) != 0 ? 1U : 0U;
    }
    return wrong;
  }
  for (std::size_t i = 0; i < count; ++i) {
    wrong += is_right(data[i], reduced<T>(rule, rank, first + i)) ? 0U : 1U;
  }
  return wrong;
}

// Computes the whole result in parts, each from one source. all_to_all: the part from s to d uses
// the indices of s's input, in which d's part starts after the parts for ranks below d.
template <typename T>
std::uint64_t check_parts(const Case& row, const DataRule& rule, int rank, const T* data) {
  std::uint64_t wrong = 0;
  const bool pairs = cut_of(row.workload.collective) == VectorCut::pairs;
  for (int source = 0; source < rule.ranks; ++source) {
    const CaseCounts theirs = layout_of(row, source, rule.ranks);
    std::size_t first = 0;
    std::size_t count = theirs.in_count;
    if (pairs) {
      const auto part = [&](int to) {
        return theirs.counts.empty() ? theirs.count : theirs.counts[static_cast<std::size_t>(to)];
      };
      for (int to = 0; to < rank; ++to) {
        first += part(to);
      }
      count = part(rank);
    } else if (source == row.root && plain_form(row.workload.collective) == Collective::gather) {
      count = theirs.in_count;
    }
    wrong += check_moved(rule, source, first, count, data);
    data += count;
  }
  return wrong;
}

template <typename T>
std::uint64_t check_type(const Case& row, const CaseCounts& layout, const DataRule& rule, int rank,
                         const T* data) {
  if (row.workload.send_recv) {
    const int from = (rank + rule.ranks - 1) % rule.ranks;
    return check_moved(rule, from, 0, layout.out_count, data);
  }
  if (layout.out_count == 0) {
    return 0;
  }
  std::size_t offset = 0;  // of this rank's part in the whole vector
  if (layout.counts.empty()) {
    offset = layout.count * static_cast<std::size_t>(rank);
  } else {
    for (int r = 0; r < rank; ++r) {
      offset += layout.counts[static_cast<std::size_t>(r)];
    }
  }
  const CollectiveTraits& traits = traits_of(row.workload.collective);
  const std::size_t first = traits.output == Holding::part ? offset : 0;
  if (traits.reduces) {
    return check_reduced(rule, rank, first, layout.out_count, data);
  }
  if (traits.input == Holding::whole_at_root) {
    return check_moved(rule, row.root, first, layout.out_count, data);
  }
  return check_parts(row, rule, rank, data);
}

}  // namespace

DataRule data_rule(const Case& row, int ranks, std::uint64_t seed, bool random) {
  const bool reducing = !row.workload.send_recv && reduces(plain_form(row.workload.collective));
  DataRule rule{
      .seed = seed,
      .collective = row.workload.collective,
      .dtype = row.dtype,
      .op = reducing ? row.op : ReduceOp::max,  // without a sum there is no limit on values
      .ranks = ranks,
      .exact = !random || !is_float(row.dtype),
      .mask = 1};
  double most = exact_limit(row.dtype);
  // avg of integers is summed in a wider type.
  if (rule.op == ReduceOp::sum || (rule.op == ReduceOp::avg && is_float(row.dtype))) {
    most /= ranks;
  } else if (rule.op == ReduceOp::premul_sum) {
    most /= ranks * kPremulFactor;
  } else if (rule.op == ReduceOp::land || rule.op == ReduceOp::lor || rule.op == ReduceOp::lxor) {
    most = 1;
  }
  if (most < 1 && is_float(row.dtype)) {
    rule.exact = false;
  }
  rule.mask = std::bit_floor(static_cast<unsigned>(std::clamp(most, 1.0, 65535.0)) + 1) - 1;
  return rule;
}

std::string bound_text(const DataRule& rule) {
  return rule.exact ? "exact"
                    : fmt::format("within {} ranks x {:.2g} x sum of magnitudes", rule.ranks,
                                  epsilon(rule.dtype));
}

void fill(const DataRule& rule, int rank, std::size_t first, std::size_t count, void* data) {
  with_dtype(rule.dtype, [&](auto type) {
    using T = TypeOf<type.value>;
    T* elements = static_cast<T*>(data);
    const Source<T> source(rule, rank);
    for (std::size_t i = 0; i < count; ++i) {
      elements[i] = source.at(first + i);
    }
  });
}

void fill_case(const Case& row, const CaseCounts& layout, const DataRule& rule, int rank, void* in,
               void* out) {
  const std::size_t element = size_of(row.dtype);
  if (out != nullptr) {
    std::memset(out, 0xA5, layout.out_count * element);
  }
  if (in != nullptr) {
    fill(rule, rank, 0, layout.in_count, in);
  }
}

std::uint64_t check_case(const Case& row, const CaseCounts& layout, const DataRule& rule, int rank,
                         const void* out) {
  return with_dtype(row.dtype, [&](auto type) {
    using T = TypeOf<type.value>;
    return check_type(row, layout, rule, rank, static_cast<const T*>(out));
  });
}

}  // namespace unisono::cli
