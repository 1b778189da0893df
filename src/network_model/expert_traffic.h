// The cost of dispatch and combine of a mixture of experts on a topology: bytes, and the time that
// its links need for them, for routers that choose k of E experts evenly.
//
//   low_latency  a row for each of the k choices, straight to the rank of its expert:
//                a rank sends tokens * k rows, (R - 1) / R of them to others
//   normal       a row crosses once to each host that has one of its experts, to the rank there
//                that stands in the sender's place, and goes from there to each rank once:
//                a part that holds m experts gets one with probability 1 - C(E - m, k) / C(E, k)
//
// Combine takes the same ways back; rows are summed where they meet. The time is that of the link
// with the most to do, and the latencies of a row's way; what kernels and calls cost is not in it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "schedule/counts.h"
#include "topology/topology.h"

namespace unisono::network_model {

struct ExpertShape {
  double tokens = 0;  // of each rank
  double hidden = 0;
  int experts = 1;
  int k = 1;
};

enum class ExpertMode { low_latency, normal };

struct ExpertCost {
  double row_bytes = 0;
  double sent_bytes = 0;        // by a rank, to others
  double host_bytes = 0;        // of these, to other hosts
  double bound_us = 0;          // of the link with the most to do
  std::string bound_link = {};  // "from -> to"; empty: nothing moves
  double time_us = 0;
};

// Bytes of a row with f8 elements and an f32 scale for each 128, as dispatch sends it; with bf16
// elements, as combine does.
double dispatch_row_bytes(double hidden);
double combine_row_bytes(double hidden);

// The probability that a token chooses one of `part` experts. `part` may be a fraction.
double chance_of_part(const ExpertShape& shape, double part);

// All ranks of the topology hold as many experts. A host is a device of the kind node; ranks in
// none are hosts of their own. Errors: Error(usage) if ranks have no way to each other. REQUIRES: k
// <= experts.
ExpertCost dispatch_cost(const ExpertShape& shape, ExpertMode mode, const Topology& topology);
ExpertCost combine_cost(const ExpertShape& shape, ExpertMode mode, const Topology& topology);

// Returns the rank of an expert if ranks hold contiguous experts in equal numbers; if they do not
// divide, the first ranks hold one more.
int rank_of_expert(int expert, int experts, int ranks);

// Returns the rows that dispatch sends for the tokens' choices, [token][k], -1 for none: a token is
// sent once to each rank that has one of its experts. Tokens are divided evenly among the ranks, in
// order. REQUIRES: expert numbers below shape.experts; `chosen` has the tokens of all ranks.
Counts dispatch_counts(std::span<const std::int32_t> chosen, const ExpertShape& shape, int ranks);
// Returns the rows that combine sends back for the same choices, if each rank first sums its
// results per token: one row from each rank to which dispatch sent the token.
Counts combine_counts(std::span<const std::int32_t> chosen, const ExpertShape& shape, int ranks);

}  // namespace unisono::network_model
