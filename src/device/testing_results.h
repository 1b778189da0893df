// Random calls on all ranks, and their expected results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "unisono/call.hpp"

namespace unisono::device {

using Bytes = std::vector<unsigned char>;

// One call, as made by all ranks.
struct Trial {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::f32;
  Reduction reduction = ReduceOp::sum;
  std::size_t count = 0;
  int root = 0;
  bool in_place = false;
  bool part_in_place = false;  // a rank's part is at its position in the whole vector
  // Block sizes of v-forms, [from][to]. A block for or from all ranks is repeated.
  std::vector<std::vector<std::size_t>> blocks = {};
  std::vector<Bytes> inputs = {};  // [rank]
};

// Collective, type and operation of a trial.
struct TrialKind {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
};
// Returns all kinds that have kernels: one per collective, type, and operation if the collective
// reduces.
std::vector<TrialKind> trial_kinds();

Trial draw(const TrialKind& kind, int ranks, std::mt19937_64& random);
Trial draw(int ranks, std::mt19937_64& random);
// Returns the call of a rank, with its counts in `counts` and `recv_counts`.
Call call_of(const Trial& trial, int rank, std::vector<std::size_t>& counts,
             std::vector<std::size_t>& recv_counts);
// Returns the offset of the rank's part in the whole vector.
std::size_t bytes_before_part(const Trial& trial, int rank);
std::size_t output_bytes(const Trial& trial, int rank);
// Returns the rank's expected output, summed in rank order by the CPU kernels; empty if there is no
// output.
Bytes result_of(const Trial& trial, int rank);
// Compares bits, treating all NaNs as equal.
bool same(Dtype dtype, const Bytes& one, const Bytes& other);

}  // namespace unisono::device
