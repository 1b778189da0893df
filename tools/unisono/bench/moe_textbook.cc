#include "bench/moe_textbook.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/weighted_sum.h"

namespace unisono::cli {

TextbookWay::TextbookWay(MoeWork& work, const TextbookExchange& exchange)
    : work_(work), textbook_(exchange) {
  const auto ranks = static_cast<std::size_t>(work_.comm.size());
  // Each rank has consecutive experts, so a stable sort by expert is also a sort by rank.
  for (std::size_t place = 0; place < work_.chosen.size(); ++place) {
    if (work_.chosen[place] >= 0) {
      sorted_.push_back(place);
    }
  }
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [&](std::size_t a, std::size_t b) { return work_.chosen[a] < work_.chosen[b]; });
  order_.assign(work_.chosen.size(), 0);
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    order_[sorted_[i]] = i;
  }
  send_.assign(ranks, 0);
  const int each = work_.row.experts / work_.comm.size();
  const int larger = work_.row.experts % work_.comm.size();
  for (const std::size_t place : sorted_) {
    const std::int32_t expert = work_.chosen[place];
    const int edge = larger * (each + 1);
    const int rank = expert < edge ? expert / (each + 1) : larger + (expert - edge) / each;
    send_[static_cast<std::size_t>(rank)] += work_.row_bytes;
  }
  packed_.resize(sorted_.size() * work_.row_bytes);
  back_.resize(packed_.size());
  came_.resize(work_.routing.rows() * work_.row_bytes);
  // Rows arrive by source rank; computes the target of each row.
  for (std::size_t row = 0; row < work_.routing.rows(); ++row) {
    target_.push_back(row);
  }
  std::stable_sort(target_.begin(), target_.end(), [&](std::size_t a, std::size_t b) {
    return work_.routing.sources()[a].rank < work_.routing.sources()[b].rank;
  });
}

void TextbookWay::dispatch() {
  const auto k = static_cast<std::size_t>(work_.row.k);
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    std::memcpy(packed_.data() + i * work_.row_bytes,
                work_.tokens.bytes().data() + sorted_[i] / k * work_.row_bytes, work_.row_bytes);
  }
  receive_.resize(send_.size());
  textbook_.counts(send_, receive_);
  textbook_.rows(packed_, send_, came_, receive_);
  for (std::size_t i = 0; i < target_.size(); ++i) {
    std::memcpy(work_.rows.bytes().data() + target_[i] * work_.row_bytes,
                came_.data() + i * work_.row_bytes, work_.row_bytes);
  }
}

void TextbookWay::combine() {
  for (std::size_t i = 0; i < target_.size(); ++i) {
    std::memcpy(came_.data() + i * work_.row_bytes,
                work_.rows.bytes().data() + target_[i] * work_.row_bytes, work_.row_bytes);
  }
  textbook_.rows(came_, receive_, back_, send_);
  sum_rows();
}

void TextbookWay::sum_rows() {
  const auto sum_of = kernels::find_weighted_sum(Dtype::bf16);
  const auto k = static_cast<std::size_t>(work_.row.k);
  std::vector<const void*> rows(k);
  std::vector<float> factors(k);
  for (std::size_t token = 0; token < work_.row.tokens; ++token) {
    int used = 0;
    for (std::size_t place = token * k; place < (token + 1) * k; ++place) {
      if (work_.chosen[place] >= 0) {
        factors[static_cast<std::size_t>(used)] = work_.weights[place];
        rows[static_cast<std::size_t>(used++)] = back_.data() + order_[place] * work_.row_bytes;
      }
    }
    sum_of(work_.out.data() + token * work_.row_bytes, nullptr, rows.data(), factors.data(), used,
           work_.row.hidden);
  }
}

}  // namespace unisono::cli
