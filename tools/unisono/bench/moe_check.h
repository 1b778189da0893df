// The expected rows and sums, computed in one process that has the tokens and the choices of all
// ranks, and all experts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/moe_work.h"

namespace unisono::cli {

class MoeCheck {
 public:
  // Keeps the reference.
  explicit MoeCheck(MoeWork& work);

  // The experts of this rank. wrong_sums() detects a row that is not among those of its expert.
  void compute();
  // Wrong elements of this rank.
  std::int64_t wrong_rows(float tolerance) const;
  // `coded`: rows came as i8, off by 1/254 of their greatest element, and rounded to bf16.
  std::int64_t wrong_sums(bool coded) const;

 private:
  struct ExpectedRow {
    int rank = 0;
    std::size_t token = 0;
  };

  MoeWork& work_;
  std::vector<ExpectedRow> expected_;  // by row, whose it is
};

}  // namespace unisono::cli
