// Excludes ranks that are drained for a while, or lost.
#include <algorithm>
#include <numeric>
#include <string>

#include "experts/dispatch.h"
#include "experts/mask.h"

namespace unisono {
namespace {

// Returns " 3", or "s 3, 5".
std::string list_text(const std::vector<int>& numbers) {
  std::string text = numbers.size() == 1 ? " " : "s ";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  }
  return text;
}

experts::Mistake find_mistake(std::span<const int> ranks, int size) {
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size) {
      return {.text = "it names rank " + std::to_string(rank) + ", but there are " +
                      std::to_string(size) + "\npass ranks of the exchange's communicator"};
    }
  }
  return {};
}

}  // namespace

namespace experts {
namespace {

// Returns the physical experts of the ranks that routing `number` includes.
PhysicalExperts physical_experts_at(const detail::ExpertExchangeState& state,
                                    const std::vector<std::uint64_t>& out_until,
                                    std::uint64_t number) {
  PhysicalExperts physical_experts = physical_experts_of(state.options, state.comm->size());
  for (auto& of_expert : physical_experts.of_expert) {
    std::erase_if(of_expert, [&](const PhysicalExperts::PhysicalExpert& physical) {
      return out_until[static_cast<std::size_t>(physical.rank)] >= number;
    });
  }
  return physical_experts;
}

std::vector<int> ranks_out(const std::vector<std::uint64_t>& out_until, std::uint64_t number) {
  std::vector<int> out;
  for (std::size_t rank = 0; rank < out_until.size(); ++rank) {
    if (out_until[rank] >= number) {
      out.push_back(static_cast<int>(rank));
    }
  }
  return out;
}

}  // namespace

void readmit(detail::ExpertExchangeState& state) {
  const std::uint64_t before = state.routings - 1;
  if (std::any_of(state.out_until.begin(), state.out_until.end(),
                  [before](std::uint64_t last) { return last != 0 && last == before; })) {
    state.physical_experts = physical_experts_at(state, state.out_until, state.routings);
  }
}

}  // namespace experts

std::vector<int> ExpertExchange::mask(std::span<const int> ranks, std::int64_t routes) {
  Communicator& comm = *state_->comm;
  experts::Mistake mistake = find_mistake(ranks, comm.size());
  if (mistake.text.empty() && routes < 1) {
    mistake.text = "it is for " + std::to_string(routes) + " routings\ngive 1 or more";
  }
  experts::open(comm, {.kind = experts::CallKind::mask}, mistake);
  std::vector<std::uint64_t> out_until(static_cast<std::size_t>(comm.size()), 0);
  for (const int rank : ranks) {
    out_until[static_cast<std::size_t>(rank)] =
        state_->routings + static_cast<std::uint64_t>(routes);
  }
  comm.all_reduce(out_until, max);

  const std::uint64_t next = state_->routings + 1;
  experts::PhysicalExperts physical_experts =
      experts::physical_experts_at(*state_, out_until, next);
  const std::vector<int> out = experts::ranks_out(out_until, next);
  std::vector<int> without;
  for (std::size_t expert = 0; expert < physical_experts.of_expert.size(); ++expert) {
    if (physical_experts.of_expert[expert].empty()) {
      without.push_back(static_cast<int>(expert));
    }
  }
  if (!without.empty()) {  // equal on all ranks
    throw Error(ErrorCode::usage, "experts: mask(): rank" + list_text(out) +
                                      " out leaves no rank for expert" + list_text(without) +
                                      "\nkeep one of their ranks, or give them replicas");
  }
  state_->physical_experts = std::move(physical_experts);
  state_->out_until = std::move(out_until);
  return out;
}

std::vector<int> ExpertExchange::masked() const {
  return experts::ranks_out(state_->out_until, state_->routings + 1);
}

ExpertExchangeOptions after_shrink(const ExpertExchangeOptions& options,
                                   const Communicator& survivors, int ranks_before) {
  const std::vector<int> previous = survivors.previous_ranks();
  if (const std::string text = experts::find_mistake(options, ranks_before); !text.empty()) {
    throw Error(ErrorCode::usage,
                "after_shrink: " + text + "\npass the options of the lost exchange");
  }
  if (previous.empty() || survivors.previous_size() != ranks_before) {
    throw Error(ErrorCode::usage, "after_shrink: this communicator was not shrunk from one of " +
                                      std::to_string(ranks_before) +
                                      " ranks\npass the communicator that shrink() returned");
  }
  const auto before = experts::physical_experts_of(options, ranks_before).experts_of_rank;
  ExpertExchangeOptions left = options;
  left.experts_of_rank.clear();
  std::vector<int> without(static_cast<std::size_t>(options.experts));
  std::iota(without.begin(), without.end(), 0);
  for (const int rank : previous) {
    const std::vector<int>& here = before[static_cast<std::size_t>(rank)];
    left.experts_of_rank.push_back(here);
    std::erase_if(without, [&](int expert) {
      return std::find(here.begin(), here.end(), expert) != here.end();
    });
  }
  if (!without.empty()) {
    throw Error(ErrorCode::usage, "after_shrink: all ranks of expert" + list_text(without) +
                                      " are lost\nload them on another rank, and make an exchange "
                                      "whose experts_of_rank says so");
  }
  return left;
}

}  // namespace unisono
