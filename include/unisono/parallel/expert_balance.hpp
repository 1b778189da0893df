// Places experts and their replicas on ranks. The placement depends on how many tokens chose each
// expert.
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

// Options of balance().
struct BalanceOptions {
  int ranks = 1;
  int physical_experts = 0;  // number of experts and replicas on all ranks; 0: no replicas
  int groups = 1;            // groups of consecutive experts; a group stays on one host
  int hosts = 1;             // each host has consecutive ranks
};

// A placement of experts and their replicas.
struct ExpertPlaces {
  std::vector<std::vector<int>> experts_of_rank;  // as ExpertExchangeOptions::experts_of_rank
  std::vector<double> load_of_rank;               // replicas share their expert's load evenly
};

// Local. Places experts. `loads` is the number of tokens that chose each expert: Routing::chosen(),
// or a mean over time. Every rank gets the same number of physical experts, and no rank gets an
// expert twice. The result depends only on the arguments, so ranks that pass the same loads get the
// same result.
// The experts of a group stay on one host. If a router limits each token to a few groups, it then
// sends the token to few hosts. This requires that `groups` is a multiple of `hosts`, and that each
// rank gets at most experts / hosts physical experts. Otherwise balance() ignores groups and hosts.
// Threads: any.
// Errors: usage if the number of physical experts is not a multiple of the number of ranks or is
// less than the number of experts, if a load is negative or not finite, or for other wrong options.
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

// Local. Lists the copies that change one placement into another. If a rank gains an expert, one of
// the ranks that hold the expert sends it: the rank with the fewest sends so far.
// Threads: any.
// Errors: usage if the numbers of ranks differ, or if no rank held an expert.
UNISONO_EXPORT std::vector<ExpertMove> find_expert_moves(std::span<const std::vector<int>> before,
                                                         std::span<const std::vector<int>> after);

// Local. Returns [from][to]: the bytes that each rank sends to each other rank for these moves. The
// sum of all entries is the cost of the moves. If you write the entries to a file of counts, they
// form a schedule that can be verified, drawn and simulated.
// Units: bytes.
// Threads: any.
// Errors: usage if a rank does not exist.
UNISONO_EXPORT std::vector<std::vector<std::size_t>> bytes_of_moves(
    std::span<const ExpertMove> moves, int ranks, std::size_t expert_bytes);

// Collective. Copies weights between steps with an all_to_all_v, expert_bytes per move: from
// held(expert) on the sending rank to placed(expert) on the receiving rank. All weights are read
// before any weights are written, so an arriving expert may use the memory of a departing expert.
// Needs temporary memory for everything that this rank sends and receives.
// Units: bytes.
// Errors, on all ranks, before any memory is written: usage for wrong lengths, a rank that does not
// exist, or an exception in `held` or `placed`; mismatch if moves or lengths differ between ranks.
UNISONO_EXPORT void move_experts(Communicator& comm, std::span<const ExpertMove> moves,
                                 std::size_t expert_bytes,
                                 const std::function<std::span<const std::byte>(int expert)>& held,
                                 const std::function<std::span<std::byte>(int expert)>& placed);

}  // namespace unisono
