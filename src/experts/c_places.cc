// The C interface of expert placement and of moving expert weights.
#include "experts/c_places.h"

#include <algorithm>
#include <string>

#include "capi/call.h"
#include "capi/capi.h"
#include "comm/handles.h"
#include "unisono/parallel/expert_balance.hpp"

namespace unisono::c_api {
namespace {

static_assert(UNISONO_EXPERT_MAJOR == static_cast<int>(ExpertLayout::expert_major));
static_assert(UNISONO_RANK_MAJOR == static_cast<int>(ExpertLayout::rank_major));
static_assert(UNISONO_FLAT == static_cast<int>(ExpertLayout::flat));
// If the struct had tail padding, a new member could fit into it without changing the size, and the
// library could not detect callers without that member.
static_assert(offsetof(unisono_expert_exchange_options_t, row_bytes) + sizeof(std::size_t) ==
              sizeof(unisono_expert_exchange_options_t));

// Returns the experts of each rank.
std::vector<std::vector<int>> placement_of(const int* experts, const int* counts, int ranks) {
  std::vector<std::vector<int>> placement;
  for (const int wanted : view(counts, static_cast<std::size_t>(std::max(ranks, 0)), "counts")) {
    const auto count = static_cast<std::size_t>(std::max(wanted, 0));
    const auto here = view(experts, count, "experts_of_ranks");
    placement.emplace_back(here.begin(), here.end());
    experts = count == 0 ? experts : experts + count;
  }
  return placement;
}

// Writes the experts rank by rank.
void write_placement(const std::vector<std::vector<int>>& placement, int* experts) {
  for (const std::vector<int>& here : placement) {
    experts = std::copy(here.begin(), here.end(), experts);
  }
}

std::vector<ExpertMove> moves_of(const unisono_expert_move_t* moves, std::size_t count) {
  std::vector<ExpertMove> known;
  for (const unisono_expert_move_t& one : view(moves, count, "moves")) {
    known.push_back({.expert = one.expert, .from = one.from, .to = one.to});
  }
  return known;
}

}  // namespace

ExpertExchangeOptions options_of(const unisono_expert_exchange_options_t* given, int ranks) {
  const auto known = members_of(
      given, "options", unisono_expert_exchange_options_t UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT,
      "UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT");
  if (known.layout < UNISONO_EXPERT_MAJOR || known.layout > UNISONO_FLAT) {
    throw Error(ErrorCode::usage,
                "layout is " + std::to_string(known.layout) +
                    "\ngive UNISONO_EXPERT_MAJOR or another layout of the enumeration");
  }
  ExpertExchangeOptions options{.experts = known.experts,
                                .k = known.k,
                                .layout = static_cast<ExpertLayout>(known.layout),
                                .alignment = known.alignment,
                                .capacity = known.capacity,
                                .max_tokens = known.max_tokens,
                                .row_bytes = known.row_bytes};
  if (known.counts != nullptr) {
    options.experts_of_rank = placement_of(known.experts_of_ranks, known.counts, ranks);
  }
  return options;
}

}  // namespace unisono::c_api

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside

unisono_result_t unisono_experts_after_shrink(const unisono_expert_exchange_options_t* options,
                                              int ranks_before, unisono_comm_t survivors,
                                              int* experts_of_ranks, int* counts) noexcept {
  return guard([&] {
    expect_place(experts_of_ranks, "experts_of_ranks");
    expect_place(counts, "counts");
    core_of(survivors);
    const unisono::ExpertExchangeOptions left = unisono::after_shrink(
        options_of(options, ranks_before), unisono::detail::Handles::communicator(survivors->core),
        ranks_before);
    write_placement(left.experts_of_rank, experts_of_ranks);
    for (const std::vector<int>& here : left.experts_of_rank) {
      *counts++ = static_cast<int>(here.size());
    }
  });
}

unisono_result_t unisono_balance_experts(const double* loads, std::size_t experts, int ranks,
                                         int physical_experts, int groups, int hosts,
                                         int* experts_of_ranks, double* load_of_ranks) noexcept {
  return guard([&] {
    expect_place(experts_of_ranks, "experts_of_ranks");
    const unisono::ExpertPlaces places = unisono::balance(
        view(loads, experts, "loads"),
        {.ranks = ranks, .physical_experts = physical_experts, .groups = groups, .hosts = hosts});
    write_placement(places.experts_of_rank, experts_of_ranks);
    if (load_of_ranks != nullptr) {
      std::copy(places.load_of_rank.begin(), places.load_of_rank.end(), load_of_ranks);
    }
  });
}

unisono_result_t unisono_find_expert_moves(const int* experts_before, const int* counts_before,
                                           const int* experts_after, const int* counts_after,
                                           int ranks, unisono_expert_move_t* moves,
                                           std::size_t* count) noexcept {
  return guard([&] {
    expect_place(count, "count");
    const auto found =
        unisono::find_expert_moves(placement_of(experts_before, counts_before, ranks),
                                   placement_of(experts_after, counts_after, ranks));
    const std::size_t written = std::min(*count, found.size());
    if (written != 0) {
      expect_place(moves, "moves");
    }
    for (std::size_t i = 0; i < written; ++i) {
      moves[i] = {.expert = found[i].expert, .from = found[i].from, .to = found[i].to};
    }
    *count = found.size();
  });
}

unisono_result_t unisono_move_experts(const unisono_expert_move_t* moves, std::size_t count,
                                      std::size_t expert_bytes, const void* const* held,
                                      void* const* placed, unisono_comm_t comm) noexcept {
  return guard([&] {
    core_of(comm);
    unisono::Communicator ranks = unisono::detail::Handles::communicator(comm->core);
    const std::vector<unisono::ExpertMove> known = moves_of(moves, count);
    // Returns the memory given for this rank's move of `expert`, in which this rank is the sender
    // or the receiver (`side`).
    const auto memory_of = [&](const auto* list, const char* name, int expert,
                               int unisono::ExpertMove::* side) {
      const auto move =
          std::find_if(known.begin(), known.end(), [&](const unisono::ExpertMove& one) {
            return one.expert == expert && one.*side == ranks.rank();
          });
      expect_place(list, name);
      const auto at = static_cast<std::size_t>(move - known.begin());
      expect_place(list[at], (std::string(name) + "[" + std::to_string(at) + "]").c_str());
      return list[at];
    };
    unisono::move_experts(
        ranks, known, expert_bytes,
        [&](int expert) {
          return std::span(static_cast<const std::byte*>(
                               memory_of(held, "held", expert, &unisono::ExpertMove::from)),
                           expert_bytes);
        },
        [&](int expert) {
          return std::span(static_cast<std::byte*>(
                               memory_of(placed, "placed", expert, &unisono::ExpertMove::to)),
                           expert_bytes);
        });
  });
}

unisono_result_t unisono_bytes_of_moves(const unisono_expert_move_t* moves, std::size_t count,
                                        int ranks, std::size_t expert_bytes,
                                        std::size_t* bytes) noexcept {
  return guard([&] {
    expect_place(bytes, "bytes");
    for (const auto& of_rank :
         unisono::bytes_of_moves(moves_of(moves, count), ranks, expert_bytes)) {
      bytes = std::copy(of_rank.begin(), of_rank.end(), bytes);
    }
  });
}
