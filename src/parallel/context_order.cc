// Merges results over different keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel/floats.h"
#include "unisono/parallel/context_parallel.hpp"

namespace unisono::parallel {

int ContextAxes::ranks() const {
  return (outer == nullptr ? 1 : outer->size()) * (heads == nullptr ? 1 : heads->size());
}

int ContextAxes::rank() const {
  const int inside = heads == nullptr ? 1 : heads->size();
  return (outer == nullptr ? 0 : outer->rank()) * inside + (heads == nullptr ? 0 : heads->rank());
}

std::vector<std::size_t> ContextAxes::positions(std::size_t length) const {
  return context_positions(order, length, ranks(), rank());
}

void merge_attention(std::size_t rows, std::size_t dim, const float* other,
                     const float* other_log_sum, float* out, float* log_sum) {
  for (std::size_t row = 0; row < rows; ++row) {
    const float high = std::max(log_sum[row], other_log_sum[row]);
    if (high == -std::numeric_limits<float>::infinity()) {
      continue;  // neither side sees a key
    }
    const float mine = std::exp(log_sum[row] - high);
    const float theirs = std::exp(other_log_sum[row] - high);
    const float whole = mine + theirs;
    for (std::size_t k = 0; k < dim; ++k) {
      float& value = out[row * dim + k];
      value = (value * mine + other[row * dim + k] * theirs) / whole;
    }
    log_sum[row] = high + std::log(whole);
  }
}

void merge_decoded(Communicator& axis, const AttentionShape& shape, AnySpan out,
                   std::span<float> log_sum) {
  const std::size_t rows = shape.batch * shape.heads;
  if (out.size() != rows * shape.dim || log_sum.size() != rows) {
    throw Error(ErrorCode::usage, "merge_decoded: " + std::to_string(out.size()) + " and " +
                                      std::to_string(log_sum.size()) + " numbers, not " +
                                      std::to_string(rows * shape.dim) + " and " +
                                      std::to_string(rows) +
                                      "\npass [batch, heads, dim] and [batch, heads]");
  }
  expect_float("merge_decoded", "out", out.dtype(), out.dtype());
  const auto bytes_of = [](ConstAnySpan span) {
    return std::span(static_cast<const std::byte*>(span.data()),
                     span.size() * size_of(span.dtype()));
  };
  // Log-sum-exps come first, so that both arrays are aligned.
  const auto sums = bytes_of(log_sum);
  const auto parts = bytes_of(out);
  std::vector<std::byte> mine(sums.begin(), sums.end());
  mine.insert(mine.end(), parts.begin(), parts.end());
  mine.resize((mine.size() + sizeof(float) - 1) / sizeof(float) * sizeof(float));
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(axis.size()));
  const bool is_wide = out.dtype() == Dtype::f32;
  axis.run({.collective = Collective::all_gather,
            .in = mine.data(),
            .out = all.data(),
            .count = is_wide ? mine.size() / sizeof(float) : mine.size(),
            .dtype = is_wide ? Dtype::f32 : Dtype::u8});
  const WrittenFloats whole(out);
  std::fill(whole.span().begin(), whole.span().end(), 0.0F);
  std::fill(log_sum.begin(), log_sum.end(), -std::numeric_limits<float>::infinity());
  // Sums in rank order, so that all ranks get the same bits.
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    const ConstAnySpan theirs(&all[at], rows, Dtype::f32);
    const ReadFloats part(ConstAnySpan(all.data() + at + sums.size(), out.size(), out.dtype()));
    merge_attention(rows, shape.dim, part.span().data(), theirs.as<float>().data(),
                    whole.span().data(), log_sum.data());
  }
  whole.finish();
}

}  // namespace unisono::parallel
