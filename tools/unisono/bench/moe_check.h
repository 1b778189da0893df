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

  // Computes the experts of this rank. wrong_sums() later detects a row that was sent to the wrong
  // expert.
  void compute();
  // Returns the number of wrong elements on this rank.
  std::int64_t wrong_rows(float tolerance) const;
  // `coded`: rows were sent as i8, with an error of up to 1/254 of their largest element, and
  // rounded to bf16.
  std::int64_t wrong_sums(bool coded) const;

 private:
  struct ExpectedRow {
    int rank = 0;
    std::size_t token = 0;
  };

  MoeWork& work_;
  std::vector<ExpectedRow> expected_;  // by row
};

}  // namespace unisono::cli
