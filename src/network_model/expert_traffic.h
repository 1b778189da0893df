// The cost of dispatch and combine of a mixture of experts on a topology: the bytes, and the time
// that the links need for them. The router is assumed to choose k of E experts evenly.
//
// low_latency  One row for each of the k choices goes straight to the rank of its expert. A rank
//              sends tokens * k rows; (R - 1) / R of these rows go to other ranks.
// normal       A row is sent once to each host that has one of its experts, to the rank there
//              that corresponds to the sender. This rank sends it once to each rank that has one
//              of its experts. A host or rank that holds m experts gets a row with probability
//              1 - C(E - m, k) / C(E, k).
//
// Combine takes the same paths back; rows are summed where they meet. The time is the time of the
// busiest link plus the latencies of a row's path. It does not include the cost of kernels and
// calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "schedule/counts.h"
#include "topology/topology.h"

namespace unisono::network_model {

struct ExpertShape {
  double tokens = 0;  // per rank
  double hidden = 0;
  int experts = 1;
  int k = 1;
};

enum class ExpertMode { low_latency, normal };

struct ExpertCost {
  double row_bytes = 0;
  double sent_bytes = 0;        // per rank, to other ranks
  double host_bytes = 0;        // the part of them for other hosts
  double bound_us = 0;          // of the busiest link
  std::string bound_link = {};  // "from -> to"; empty: nothing moves
  double time_us = 0;
};

// The bytes of a row: dispatch sends f8 elements with an f32 scale per 128 of them, combine sends
// bf16 elements.
double dispatch_row_bytes(double hidden);
double combine_row_bytes(double hidden);

// Returns the probability that a token chooses one of `part` experts. `part` may be a fraction.
double chance_of_part(const ExpertShape& shape, double part);

// All ranks of the topology hold equally many experts. A host is a device of kind `node`; a rank
// outside all nodes is a host of its own. Errors: Error(usage) if there is no route between two
// ranks. REQUIRES: k <= experts.
ExpertCost dispatch_cost(const ExpertShape& shape, ExpertMode mode, const Topology& topology);
ExpertCost combine_cost(const ExpertShape& shape, ExpertMode mode, const Topology& topology);

// Returns the rank of an expert. Ranks hold contiguous experts in equal numbers; if the numbers do
// not divide, the first ranks hold one more.
int rank_of_expert(int expert, int experts, int ranks);

// Returns the rows that dispatch sends for the tokens' choices, [token][k], -1 for no choice. A
// token is sent once to each rank that has one of its experts. Tokens are divided evenly among the
// ranks, in order. REQUIRES: expert numbers below shape.experts; `chosen` has the tokens of all
// ranks.
Counts dispatch_counts(std::span<const std::int32_t> chosen, const ExpertShape& shape, int ranks);
// Returns the rows that combine sends back for these choices, if each rank first sums its results
// per token: one row from each rank to which dispatch sent the token.
Counts combine_counts(std::span<const std::int32_t> chosen, const ExpertShape& shape, int ranks);

}  // namespace unisono::network_model
