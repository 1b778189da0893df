// Exchange: options, routing and dispatch.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/hash.h"
#include "experts/state.h"
#include "kernels/kernels.h"

namespace unisono::parallel {
namespace {

using detail::Claim;
using detail::ExchangeState;
using detail::Fault;
using detail::RoutingState;

std::vector<int> contiguous(int experts, int ranks) {
  std::vector<int> places;
  for (int rank = 0; rank < ranks; ++rank) {
    const int here = experts / ranks + (rank < experts % ranks ? 1 : 0);
    places.insert(places.end(), static_cast<std::size_t>(here), rank);
  }
  return places;
}

Claim check(const ExchangeOptions& options, int ranks) {
  Hash same;
  same.add(static_cast<std::uint64_t>(options.experts)).add(static_cast<std::uint64_t>(options.k));
  same.add(static_cast<std::uint64_t>(options.layout));
  same.add(static_cast<std::uint64_t>(options.alignment));
  same.add(static_cast<std::uint64_t>(options.capacity));
  for (const int place : options.places) {
    same.add(static_cast<std::uint64_t>(place));
  }
  Claim claim{.same = same.value()};
  const std::size_t places = options.places.size();
  if (options.experts < 1) {
    claim.fault = Fault::experts;
    claim.value = options.experts;
  } else if (options.k < 1) {
    claim.fault = Fault::choices;
    claim.value = options.k;
  } else if (options.alignment < 1 || options.capacity < 0) {
    claim.fault = Fault::alignment;
    claim.value = options.alignment < 1 ? options.alignment : options.capacity;
  } else if (places != 0) {
    const auto wrong = std::find_if(options.places.begin(), options.places.end(),
                                    [ranks](int rank) { return rank < 0 || rank >= ranks; });
    if (wrong != options.places.end() || places != static_cast<std::size_t>(options.experts)) {
      claim.fault = Fault::place;
      claim.value = std::min<std::int64_t>(wrong - options.places.begin(), options.experts);
    }
  }
  return claim;
}

template <typename Number>
Claim check_choices(const ExchangeOptions& options, std::span<const Number> experts,
                    std::uint64_t number) {
  const auto k = static_cast<std::size_t>(options.k);
  Claim claim{.same = number, .count = static_cast<std::int64_t>(experts.size() / k)};
  const auto wrong = std::find_if(experts.begin(), experts.end(), [&](Number expert) {
    return expert < -1 || expert >= options.experts;
  });
  if (experts.size() % k != 0) {
    claim.fault = Fault::ids;
    claim.value = static_cast<std::int64_t>(experts.size());
  } else if (wrong != experts.end()) {
    claim.fault = Fault::expert;
    claim.value = wrong - experts.begin();
  }
  return claim;
}

template <typename Number>
std::unique_ptr<const RoutingState> make(ExchangeState& exchange, std::span<const Number> experts) {
  Communicator& communicator = *exchange.communicator;
  const Claim mine = check_choices(exchange.options, experts, exchange.routings);
  const std::vector<Claim> all = detail::agree(communicator, "route", mine, "made other routings");
  std::vector<std::size_t> tokens;
  std::vector<std::size_t> counts;
  for (const Claim& claim : all) {
    tokens.push_back(static_cast<std::size_t>(claim.count));
    counts.push_back(tokens.back() * static_cast<std::size_t>(exchange.options.k));
  }
  const std::vector<std::int32_t> own(experts.begin(), experts.end());
  std::vector<std::int32_t> choices(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  communicator.all_gather_v(own, choices, counts);
  auto state = std::make_unique<RoutingState>(
      detail::make_routing(exchange.options, communicator.rank(), tokens, std::move(choices)));
  state->exchange = exchange.identity;
  state->number = ++exchange.routings;
  return state;
}

bool overlap(const void* first, std::size_t first_bytes, const void* second,
             std::size_t second_bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(first);
  const auto b = reinterpret_cast<std::uintptr_t>(second);
  return first_bytes > 0 && second_bytes > 0 && a < b + second_bytes && b < a + first_bytes;
}

Claim check(const ExchangeState& exchange, const RoutingState& routing,
            std::span<const Payload> payloads) {
  Hash same;
  same.add(routing.number).add(payloads.size());
  Claim claim;
  const auto fail = [&](Fault fault, std::size_t payload) {
    if (claim.fault == Fault::none) {
      claim.fault = fault;
      claim.value = static_cast<std::int64_t>(payload);
    }
  };
  if (routing.exchange != exchange.identity) {
    fail(Fault::other_routing, 0);
  }
  const auto tokens = static_cast<std::size_t>(routing.tokens);
  const std::size_t rows = routing.sources.size();
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const Payload& payload = payloads[i];
    same.add(payload.row_bytes);
    const std::size_t most = std::max({tokens, rows, routing.placed.size(), std::size_t{1}});
    const bool used = payload.row_bytes > 0;
    if (payload.row_bytes > std::numeric_limits<std::size_t>::max() / 2 / most ||
        (used && ((tokens > 0 && payload.in == nullptr) || (rows > 0 && payload.out == nullptr)))) {
      fail(Fault::buffer, i);
    } else if (overlap(payload.in, tokens * payload.row_bytes, payload.out,
                       rows * payload.row_bytes)) {
      fail(Fault::overlap, i);
    }
  }
  claim.same = same.value();
  return claim;
}

// Rows from where they arrived to where they belong; zeros in the padding.
void spread(const RoutingState& routing, const std::byte* arrived, const Payload& payload) {
  auto* out = static_cast<std::byte*>(payload.out);
  const std::size_t bytes = payload.row_bytes;
  for (const detail::Placed& placed : routing.placed) {
    kernels::copy(out + placed.row * bytes, arrived + placed.arrival * bytes, bytes,
                  kernels::Store::cached);
  }
  for (std::size_t row = 0; row < routing.sources.size(); ++row) {
    if (routing.sources[row].rank < 0) {
      std::memset(out + row * bytes, 0, bytes);
    }
  }
}

void send_payload(ExchangeState& exchange, const RoutingState& routing, const Payload& payload) {
  const std::size_t bytes = payload.row_bytes;
  const auto* in = static_cast<const std::byte*>(payload.in);
  exchange.packed.resize(routing.sent_tokens.size() * bytes);
  for (std::size_t i = 0; i < routing.sent_tokens.size(); ++i) {
    kernels::copy(exchange.packed.data() + i * bytes, in + routing.sent_tokens[i] * bytes, bytes,
                  kernels::Store::cached);
  }
  const std::vector<std::size_t> send = detail::scaled(routing.send_counts, bytes);
  const std::vector<std::size_t> receive = detail::scaled(routing.recv_counts, bytes);
  const std::size_t arriving = std::accumulate(receive.begin(), receive.end(), std::size_t{0});
  if (exchange.options.layout == ExpertLayout::rank_major) {
    const std::span<std::byte> out(static_cast<std::byte*>(payload.out), arriving);
    exchange.communicator->all_to_all_v(exchange.packed, send, out, receive);
    return;
  }
  exchange.arrived.resize(arriving);
  exchange.communicator->all_to_all_v(exchange.packed, send, exchange.arrived, receive);
  spread(routing, exchange.arrived.data(), payload);
}

}  // namespace

Exchange::Exchange(Communicator& communicator, const ExchangeOptions& options)
    : state_(std::make_unique<ExchangeState>()) {
  const Claim mine = check(options, communicator.size());
  (void)detail::agree(communicator, "exchange of experts", mine, "other options");
  state_->communicator = &communicator;
  state_->options = options;
  if (options.places.empty()) {
    state_->options.places = contiguous(options.experts, communicator.size());
  }
}
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;
Exchange::~Exchange() = default;

Routing Exchange::route(std::span<const std::int32_t> experts) {
  return Routing(make(*state_, experts));
}

Routing Exchange::route(std::span<const std::int64_t> experts) {
  return Routing(make(*state_, experts));
}

void Exchange::dispatch(const Routing& routing, std::span<const Payload> payloads) {
  const RoutingState& state = *routing.state_;
  (void)detail::agree(*state_->communicator, "dispatch", check(*state_, state, payloads),
                      "another routing or other row sizes");
  for (const Payload& payload : payloads) {
    if (payload.row_bytes > 0) {
      send_payload(*state_, state, payload);
    }
  }
}

}  // namespace unisono::parallel
