// Combine: the rows go back to the ranks of their tokens, which sum them.
#include <algorithm>
#include <bit>
#include <cmath>
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

Fault first_fault(const ExchangeState& exchange, const RoutingState& routing,
                  const Combine& arguments) {
  const Dtype dtype = arguments.dtype;
  if (routing.exchange != exchange.identity) {
    return Fault::other_routing;
  }
  if (dtype != Dtype::f32 && dtype != Dtype::bf16 && dtype != Dtype::f16) {
    return Fault::dtype;
  }
  const std::size_t most = std::max({routing.sources.size(), routing.home.size(), std::size_t{1}});
  const bool used = arguments.hidden > 0;
  if (arguments.hidden > std::numeric_limits<std::size_t>::max() / 16 / most ||
      (used && ((!routing.sources.empty() && arguments.in == nullptr) ||
                (routing.tokens > 0 && arguments.out == nullptr)))) {
    return Fault::buffer;
  }
  if (arguments.weights.empty()) {
    return Fault::none;
  }
  if (exchange.options.layout == ExpertLayout::rank_major) {
    return Fault::rank_major_weights;
  }
  return arguments.weights.size() == routing.home.size() ? Fault::none : Fault::weights;
}

Claim check(const ExchangeState& exchange, const RoutingState& routing, const Combine& arguments) {
  Hash same;
  same.add(routing.number).add(arguments.hidden);
  same.add(static_cast<std::uint64_t>(arguments.dtype));
  Claim claim{.fault = first_fault(exchange, routing, arguments), .same = same.value()};
  if (claim.fault == Fault::weights) {
    claim.value = static_cast<std::int64_t>(arguments.weights.size());
  }
  for (std::size_t i = 0; i < arguments.weights.size() && claim.fault == Fault::none; ++i) {
    if (std::isnan(arguments.weights[i]) && routing.home[i] >= 0) {
      claim.fault = Fault::nan_weight;
      claim.value = static_cast<std::int64_t>(i);
    }
  }
  return claim;
}

float value_of(float value) {
  return value;
}
float value_of(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
float value_of(f16 value) {
  return to_float(value);
}
void round_to(float sum, float& out) {
  out = sum;
}
void round_to(float sum, bf16& out) {
  out = to_bf16(sum);
}
void round_to(float sum, f16& out) {
  out = to_f16(sum);
}

// So many elements are summed before the next ones: they stay in registers and the innermost cache,
// and a loop of known length is vectorised.
constexpr std::size_t kBlock = 64;

struct Block {
  std::size_t first = 0;
  std::size_t count = 0;
};

template <typename Element>
void add_row(float (&sum)[kBlock], const Element* row, std::size_t count, float weight) {
  if (count == kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      sum[i] += weight * value_of(row[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] += weight * value_of(row[i]);
  }
}

template <typename Element>
void sum_block(const ExchangeState& exchange, const RoutingState& routing, const Combine& arguments,
               std::size_t token, Block block) {
  const auto k = static_cast<std::size_t>(exchange.options.k);
  const std::size_t hidden = arguments.hidden;
  const auto* rows = reinterpret_cast<const Element*>(exchange.arrived.data());
  float sum[kBlock] = {};
  for (std::size_t slot = token * k; slot < (token + 1) * k; ++slot) {
    if (routing.home[slot] < 0) {
      continue;
    }
    const std::size_t row = static_cast<std::size_t>(routing.home[slot]) * hidden;
    const float weight = arguments.weights.empty() ? 1.0F : arguments.weights[slot];
    add_row(sum, rows + row + block.first, block.count, weight);
  }
  const std::size_t place = token * hidden + block.first;
  if (arguments.add != nullptr) {
    add_row(sum, static_cast<const Element*>(arguments.add) + place, block.count, 1.0F);
  }
  auto* out = static_cast<Element*>(arguments.out) + place;
  for (std::size_t i = 0; i < block.count; ++i) {
    round_to(sum[i], out[i]);
  }
}

template <typename Element>
void sum_rows(const ExchangeState& exchange, const RoutingState& routing,
              const Combine& arguments) {
  for (std::size_t token = 0; token < static_cast<std::size_t>(routing.tokens); ++token) {
    for (std::size_t first = 0; first < arguments.hidden; first += kBlock) {
      sum_block<Element>(exchange, routing, arguments, token,
                         {.first = first, .count = std::min(kBlock, arguments.hidden - first)});
    }
  }
}

// The rows in the order in which they go back, as flat and rank_major rows lie already.
std::span<const std::byte> pack(ExchangeState& exchange, const RoutingState& routing,
                                const std::byte* in, std::size_t bytes) {
  if (exchange.options.layout != ExpertLayout::expert_major) {
    return {in, routing.placed.size() * bytes};
  }
  exchange.packed.resize(routing.placed.size() * bytes);
  std::byte* next = exchange.packed.data();
  for (const detail::Placed& placed : routing.placed) {
    kernels::copy(next, in + placed.row * bytes, bytes, kernels::Store::cached);
    next += bytes;
  }
  return exchange.packed;
}

}  // namespace

void Exchange::combine(const Routing& routing, const Combine& arguments) {
  const RoutingState& state = *routing.state_;
  Communicator& communicator = *state_->communicator;
  (void)detail::agree(communicator, "combine", check(*state_, state, arguments),
                      "another routing, hidden size or dtype");
  if (arguments.hidden == 0) {
    return;
  }
  const std::size_t bytes = arguments.hidden * size_of(arguments.dtype);
  const std::span<const std::byte> rows =
      pack(*state_, state, static_cast<const std::byte*>(arguments.in), bytes);
  const std::vector<std::size_t> send = detail::scaled(state.back_counts, bytes);
  const std::vector<std::size_t> receive = detail::scaled(state.home_counts, bytes);
  state_->arrived.resize(std::accumulate(receive.begin(), receive.end(), std::size_t{0}));
  communicator.all_to_all_v(rows, send, state_->arrived, receive);
  switch (arguments.dtype) {
    case Dtype::f32:
      return sum_rows<float>(*state_, state, arguments);
    case Dtype::bf16:
      return sum_rows<bf16>(*state_, state, arguments);
    default:
      return sum_rows<f16>(*state_, state, arguments);
  }
}

}  // namespace unisono::parallel
