// What an exchange and a routing hold, and how ranks agree on errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unisono/parallel/experts.hpp"

namespace unisono::parallel::detail {

struct ExchangeState {
  Communicator* communicator = nullptr;
  ExchangeOptions options;
  // Shared with its routings: while one lives, no other exchange has the same address here.
  std::shared_ptr<const char> identity = std::make_shared<const char>();
  std::uint64_t routings = 0;  // made so far: the same on all ranks
  std::vector<std::byte> packed;
  std::vector<std::byte> arrived;
};

struct Placed {
  std::size_t arrival = 0;  // among the rows that travelled here
  std::size_t row = 0;      // of the result
};

struct RoutingState {
  std::shared_ptr<const char> exchange = nullptr;  // the identity of the one that made it
  std::uint64_t number = 0;
  std::int64_t tokens = 0;
  std::vector<RowSource> sources;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> loads;
  std::int64_t dropped = 0;
  // Dispatch: the tokens that go to each rank, one rank after the other.
  std::vector<std::size_t> sent_tokens;
  std::vector<std::size_t> send_counts;
  std::vector<std::size_t> recv_counts;
  std::vector<Placed> placed;  // in the order (source rank, token, choice)
  // Combine: the rows that go back to each rank and come from each, and by token and choice which
  // of those that come it is; -1: none.
  std::vector<std::size_t> back_counts;
  std::vector<std::size_t> home_counts;
  std::vector<std::int64_t> home;
};

// The first thing that is wrong with this rank's arguments: a sentence and a number that it names.
enum class Fault : std::int64_t {
  none,
  experts,
  choices,
  place,
  alignment,
  ids,
  expert,
  other_routing,
  buffer,
  overlap,
  weights,
  nan_weight,
  rank_major_weights,
  dtype,
};
struct Claim {
  Fault fault = Fault::none;
  std::int64_t value = 0;
  std::uint64_t same = 0;  // a hash of what must be the same on all ranks
  std::int64_t count = 0;  // something that all ranks learn
};

// Throws the same error on all ranks if one has a fault, or `same` differs from rank 0's; otherwise
// returns all claims. `differs` names what must be the same.
std::vector<Claim> agree(Communicator& communicator, const char* call, const Claim& mine,
                         const char* differs);

// Rows to bytes.
std::vector<std::size_t> scaled(std::span<const std::size_t> counts, std::size_t bytes);

// From all ranks' choices (tokens x k each, one rank after the other).
RoutingState make_routing(const ExchangeOptions& options, int rank,
                          std::span<const std::size_t> tokens, std::vector<std::int32_t> choices);

}  // namespace unisono::parallel::detail
