// Making an exchange, and routings of it.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "experts/agreement.h"
#include "experts/dispatch.h"
#include "experts/state.h"

namespace unisono {
namespace {

using experts::CallKind;
using experts::Mistake;

std::uint64_t hash_of(const ExchangeOptions& options) {
  Hash hash;
  const auto add = [&](std::int64_t value) { hash.add(static_cast<std::uint64_t>(value)); };
  add(options.experts);
  add(options.k);
  add(static_cast<std::int64_t>(options.layout));
  add(options.alignment);
  add(options.capacity);
  for (const std::vector<int>& rank : options.experts_of_rank) {
    add(static_cast<std::int64_t>(rank.size()));
    for (const int expert : rank) {
      add(expert);
    }
  }
  return hash.value();
}

std::string not_an_expert(std::size_t index, std::int64_t expert, const ExchangeOptions& options) {
  const auto k = static_cast<std::size_t>(options.k);
  return "token " + std::to_string(index / k) + " chose expert " + std::to_string(expert) +
         " at place " + std::to_string(index % k) + ", and there are " +
         std::to_string(options.experts) + "\ngive numbers from 0 to " +
         std::to_string(options.experts - 1) + ", or -1 for none";
}

template <typename Number>
Mistake find_mistake(std::span<const Number> chosen, const ExchangeOptions& options) {
  if (chosen.size() % static_cast<std::size_t>(options.k) != 0) {
    return {.text = "k = " + std::to_string(options.k) + " does not divide its " +
                    std::to_string(chosen.size()) + " choices\ngive k of them for each token"};
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] < -1 || chosen[i] >= options.experts) {
      return {.text = not_an_expert(i, static_cast<std::int64_t>(chosen[i]), options)};
    }
  }
  return {};
}

template <typename Number>
std::unique_ptr<detail::RoutingState> route(detail::ExchangeState& state,
                                            std::span<const Number> chosen) {
  Communicator& comm = *state.comm;
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  const auto k = static_cast<std::size_t>(state.options.k);
  Mistake mistake = experts::find_started(state);
  if (mistake.text.empty()) {
    mistake = find_mistake(chosen, state.options);
  }
  const auto openings =
      experts::open(comm, {.kind = CallKind::route, .own = chosen.size()}, mistake);
  std::vector<std::size_t> counts(ranks);
  std::transform(openings.begin(), openings.end(), counts.begin(),
                 [](const experts::Opening& opening) { return opening.own; });
  std::vector<std::int32_t> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  std::vector<experts::Choices> by_rank;
  std::size_t first = 0;
  for (const std::size_t count : counts) {
    by_rank.push_back(std::span(all).subspan(first, count));
    first += count;
  }
  const auto mine = static_cast<std::size_t>(by_rank[rank].data() - all.data());
  std::transform(chosen.begin(), chosen.end(), all.begin() + static_cast<std::ptrdiff_t>(mine),
                 [](Number expert) { return static_cast<std::int32_t>(expert); });
  if (!all.empty()) {
    const std::vector<std::int32_t> sent(by_rank[rank].begin(), by_rank[rank].end());
    comm.all_gather_v(sent, all, counts);
  }
  auto routing = std::make_unique<detail::RoutingState>();
  routing->exchange = state.identity;
  routing->number = ++state.routings;
  routing->k = state.options.k;
  routing->tokens = chosen.size() / k;
  routing->layout = state.options.layout;
  routing->experts_here = state.seats.experts_of_rank[rank];
  routing->places = experts::find_places(state.options, state.seats, by_rank, comm.rank());
  return routing;
}

}  // namespace

Exchange::Exchange(Communicator& communicator, const ExchangeOptions& options)
    : state_(std::make_unique<detail::ExchangeState>(communicator, options)) {
  Mistake mistake;
  if (const std::string text = experts::find_mistake(options, communicator.size()); !text.empty()) {
    mistake.text = text + "\ncorrect the ExchangeOptions";
  }
  experts::open(communicator, {.kind = CallKind::exchange, .options = hash_of(options)}, mistake);
  state_->seats = experts::seats_of(options, communicator.size());
}
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;
Exchange::~Exchange() = default;

Routing Exchange::route(std::span<const std::int32_t> experts) {
  return Routing(unisono::route(*state_, experts));
}
Routing Exchange::route(std::span<const std::int64_t> experts) {
  return Routing(unisono::route(*state_, experts));
}

}  // namespace unisono
