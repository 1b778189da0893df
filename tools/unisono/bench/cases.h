// One row of a benchmark: the collective, the amount of data, and the places of each rank's data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/types.hpp"

namespace unisono::cli {

// The measured operation: a collective, or send_recv (every rank sends to the next one and receives
// from the previous one).
struct BenchWorkload {
  bool send_recv = false;
  Collective collective = Collective::barrier;
  std::string_view name() const { return send_recv ? "send_recv" : to_string(collective); }
};

struct Case {
  BenchWorkload workload;
  std::string algorithm;  // empty: chosen by the library
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::uint64_t bytes = 0;  // as asked for
  bool in_place = false;
};

// The counts of one case on one rank. Parts of the v-forms have uneven sizes.
struct CaseCounts {
  std::size_t count = 0;     // as in Call::count; the total for v-forms
  std::size_t in_count = 0;  // elements of this rank's input; 0: it has none
  std::size_t out_count = 0;
  std::size_t in_offset = 0;  // where they start, in elements, when in place
  std::size_t out_offset = 0;
  std::uint64_t size_bytes = 0;  // the larger of the send and the receive totals
  std::vector<std::size_t> counts;
  std::vector<std::size_t> recv_counts;
};

CaseCounts layout_of(const Case& row, int rank, int ranks);

// The share of part `part` when `total` elements are dealt out unevenly in `parts` parts.
std::size_t uneven_share(std::size_t total, int parts, int part);

// busbw = algbw x this.
double bus_factor(const BenchWorkload& workload, int ranks);

// In place is not defined for barrier and send_recv.
bool has_in_place(const BenchWorkload& workload);

}  // namespace unisono::cli
