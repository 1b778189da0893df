// Random calls on all ranks, and what each must give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "unisono/call.hpp"

namespace unisono::device {

using Bytes = std::vector<unsigned char>;

// One call as all ranks make it.
struct Trial {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::f32;
  Reduction reduction = ReduceOp::sum;
  std::size_t count = 0;
  int root = 0;
  bool in_place = false;
  bool part_in_place = false;  // a rank's part lies where the whole vector has it
  // The blocks of v-forms, [from][to]; one that goes to all, or comes from all, is there often.
  std::vector<std::vector<std::size_t>> blocks = {};
  std::vector<Bytes> inputs = {};  // [rank]
};

// What a call does.
struct TrialKind {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
};
// All that have kernels: one for each collective and type, and for each operation where it reduces.
std::vector<TrialKind> trial_kinds();

Trial draw(const TrialKind& kind, int ranks, std::mt19937_64& random);
Trial draw(int ranks, std::mt19937_64& random);
// The call of a rank, whose counts lie in `counts` and `recv_counts`.
Call call_of(const Trial& trial, int rank, std::vector<std::size_t>& counts,
             std::vector<std::size_t>& recv_counts);
// How much of the whole vector lies before the rank's part of it.
std::size_t bytes_before_part(const Trial& trial, int rank);
std::size_t output_bytes(const Trial& trial, int rank);
// What the rank has afterwards: sums in the order of the ranks, by the kernels of the CPU. Empty:
// it gets nothing.
Bytes result_of(const Trial& trial, int rank);
// The same bits, but that a NaN is any NaN.
bool same(Dtype dtype, const Bytes& one, const Bytes& other);

}  // namespace unisono::device
