#include "bench/moe_check.h"

#include <cmath>

namespace unisono::cli {

MoeCheck::MoeCheck(MoeWork& work) : work_(work) {
  std::vector<std::vector<ExpectedRow>> of_expert(static_cast<std::size_t>(work_.row.experts));
  for (int rank = 0; rank < work_.comm.size(); ++rank) {
    const std::vector<std::int32_t> chosen = draw_routing(work_.row, rank);
    for (std::size_t place = 0; place < chosen.size(); ++place) {
      if (chosen[place] >= 0) {
        of_expert[static_cast<std::size_t>(chosen[place])].push_back(
            {.rank = rank, .token = place / static_cast<std::size_t>(work_.row.k)});
      }
    }
  }
  for (const int expert : work_.routing.experts_here()) {
    const auto& rows = of_expert[static_cast<std::size_t>(expert)];
    expected_.insert(expected_.end(), rows.begin(), rows.end());
  }
}

void MoeCheck::compute() {
  auto* values = reinterpret_cast<std::uint16_t*>(work_.rows.bytes().data());
  for (std::size_t local = 0; local < work_.routing.experts_here().size(); ++local) {
    const std::size_t first = work_.routing.first_row(static_cast<int>(local)) * work_.row.hidden;
    const std::size_t count = work_.routing.rows_of(static_cast<int>(local)) * work_.row.hidden;
    for (std::size_t i = first; i < first + count; ++i) {
      values[i] = output_of(values[i], work_.routing.experts_here()[local]);
    }
  }
}

std::int64_t MoeCheck::wrong_rows(float tolerance) const {
  std::int64_t wrong = 0;
  const auto* values = reinterpret_cast<const bf16*>(work_.rows.bytes().data());
  if (expected_.size() != work_.routing.rows()) {
    return static_cast<std::int64_t>(work_.row.hidden * (expected_.size() + work_.routing.rows()));
  }
  for (std::size_t row = 0; row < expected_.size(); ++row) {
    for (std::size_t i = 0; i < work_.row.hidden; ++i) {
      const bf16 wanted = {value_of(expected_[row].rank, expected_[row].token, i)};
      const float off = to_float(values[row * work_.row.hidden + i]) - to_float(wanted);
      wrong += !(std::fabs(off) <= tolerance);
    }
  }
  return wrong;
}

std::int64_t MoeCheck::wrong_sums(bool coded) const {
  std::int64_t wrong = 0;
  const auto* values = reinterpret_cast<const bf16*>(work_.out.data());
  const auto k = static_cast<std::size_t>(work_.row.k);
  for (std::size_t i = 0; i < work_.row.tokens * work_.row.hidden; ++i) {
    const std::size_t token = i / work_.row.hidden;
    const std::uint16_t one = value_of(work_.comm.rank(), token, i % work_.row.hidden);
    float sum = 0;
    float off = 0;
    for (std::size_t place = token * k; place < (token + 1) * k; ++place) {
      const int expert = work_.chosen[place];
      sum += expert < 0 ? 0.0F : work_.weights[place] * to_float(bf16{output_of(one, expert)});
      off += work_.weights[place] * kGreatestValue * static_cast<float>(expert + 1);
    }
    const float allowed = coded ? off / 127 + std::fabs(sum) / 128 : 0.0F;
    wrong += !(std::fabs(to_float(values[i]) - to_float(to_bf16(sum))) <= allowed);
  }
  return wrong;
}

}  // namespace unisono::cli
