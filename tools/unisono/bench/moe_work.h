// One case of `unisono bench moe` on one rank: the router's choices, and the memory of both
// implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/moe_routing.h"
#include "unisono/communicator.hpp"
#include "unisono/parallel/experts.hpp"
#include "unisono/types.hpp"

namespace unisono::cli {

// The largest element of a token. Elements are small integers, so that their weighted sums are
// exact in bf16.
inline constexpr float kGreatestValue = 6;
std::uint16_t value_of(int rank, std::size_t token, std::size_t i);
// Returns an expert's output for an element while results are checked; it differs for each expert.
std::uint16_t output_of(std::uint16_t value, int expert);

struct MoeWork {
  // Keeps the references.
  MoeWork(Communicator& communicator, const MoeCase& measured);

  Communicator& comm;
  const MoeCase& row;
  std::size_t row_bytes;
  std::vector<std::int32_t> chosen;
  ExpertExchange exchange;
  Routing routing;
  Region tokens;
  Region rows;
  std::vector<std::byte> out;
  std::vector<float> weights;  // by place, like `chosen`
};

}  // namespace unisono::cli
