// Places experts and their replicas on ranks according to how many tokens chose them.
//
//   const unisono::ExpertPlaces places =
//       unisono::balance(loads, {.ranks = 8, .physical_experts = 72, .groups = 8, .hosts = 2});
//   unisono::ExpertExchange exchange(comm, {.experts = 64, .k = 8,
//                                     .experts_of_rank = places.experts_of_rank});
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"

namespace unisono {

// The ranks to place experts on.
struct BalanceOptions {
  int ranks = 1;
  int physical_experts = 0;  // experts and replicas on all ranks together; 0: no replicas
  int groups = 1;            // of consecutive experts; all experts of a group stay on one host
  int hosts = 1;             // of consecutive ranks
};

// A placement of experts and their replicas.
struct ExpertPlaces {
  std::vector<std::vector<int>> experts_of_rank;  // as ExpertExchangeOptions::experts_of_rank
  std::vector<double> load_of_rank;               // replicas share their expert's load evenly
};

// Local. Places experts. `loads`: how many tokens chose each expert (Routing::chosen(), or a mean
// over time). Every rank gets the same number of physical experts, and no rank gets an expert
// twice. The experts of a group stay on one host, so that a router limited to few groups sends to
// few hosts. This requires that `groups` is a multiple of `hosts`, and that a rank gets at most
// experts / hosts physical experts. Otherwise balance() ignores groups and hosts. The result
// depends only on the arguments, so ranks that pass the same loads get the same result.
// Threads: any.
// Errors: usage (physical experts that are no multiple of the ranks, fewer physical experts than
// experts, negative or non-finite loads, ...).
// Source: the greedy method of EPLB (DeepSeek-AI, 2025): groups to hosts, replicas to the heaviest
// experts, experts to the least loaded ranks, always the heaviest first. Without groups, balance()
// then swaps experts and replicas between ranks as long as a swap makes the loads more even. EPLB
// may place an expert twice on a rank; balance() does not.
UNISONO_EXPORT ExpertPlaces balance(std::span<const double> loads, const BalanceOptions& options);

// A copy of one expert's weights from one rank to another.
struct ExpertMove {
  int expert = 0;
  int from = 0;
  int to = 0;
};

// Local. Lists the copies that change one placement into another. If a rank gains an expert, the
// sender is the rank that has sent least so far among the ranks that hold this expert.
// Threads: any.
// Errors: usage (different numbers of ranks, an expert that no rank held).
UNISONO_EXPORT std::vector<ExpertMove> find_expert_moves(std::span<const std::vector<int>> before,
                                                         std::span<const std::vector<int>> after);

// Local. Returns [from][to]: the bytes that each rank sends to each other rank for these moves. The
// sum of all entries is the cost of the moves. Written to a file of counts, the entries form a
// schedule that can be verified, drawn and simulated.
// Units: bytes.
// Threads: any.
// Errors: usage (a rank that does not exist).
UNISONO_EXPORT std::vector<std::vector<std::size_t>> bytes_of_moves(
    std::span<const ExpertMove> moves, int ranks, std::size_t expert_bytes);

// Collective: an all_to_all_v. Copies weights between steps, expert_bytes per move: from
// held(expert) on the rank that sends it to placed(expert) on the rank that receives it. All
// weights are read before any weights are written, so an arriving expert may use the memory of a
// departing expert. Needs temporary memory for everything that this rank sends and receives.
// Units: bytes.
// Errors, on all ranks, before any memory is written: usage (wrong lengths, a rank that does not
// exist, an exception in `held` or `placed`), mismatch (moves or lengths that differ between
// ranks).
UNISONO_EXPORT void move_experts(Communicator& comm, std::span<const ExpertMove> moves,
                                 std::size_t expert_bytes,
                                 const std::function<std::span<const std::byte>(int expert)>& held,
                                 const std::function<std::span<std::byte>(int expert)>& placed);

}  // namespace unisono
