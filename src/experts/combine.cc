// Combine: the outputs of a token's experts, summed; and its gradients.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "experts/async.h"
#include "experts/dispatch.h"
#include "experts/load.h"
#include "experts/rows.h"
#include "kernels/kernels.h"
#include "kernels/weighted_sum.h"

namespace unisono {
namespace {

using experts::CallKind;
using experts::Mistake;
using experts::Opening;
using experts::Place;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

Mistake check(const detail::RoutingState& routing, const CombineRows& combine) {
  if (kernels::find_weighted_sum(combine.dtype) == nullptr) {
    return {.text =
                std::string(to_string(combine.dtype)) + " rows cannot be weighted\ncombine floats"};
  }
  Mistake mistake;
  const std::size_t row_bytes = combine.hidden * size_of(combine.dtype);
  experts::expect_rows(mistake, "rows", combine.rows.size(), routing, row_bytes);
  experts::expect(mistake, "out", combine.out.size(), routing.tokens, row_bytes);
  if (!combine.residual.empty()) {
    experts::expect(mistake, "residual", combine.residual.size(), routing.tokens, row_bytes);
  }
  experts::expect_coding(mistake, combine.coding, combine.dtype, row_bytes);
  return mistake;
}

Mistake check_weights(const detail::RoutingState& routing, std::span<const float> weights) {
  Mistake mistake;
  if (weights.empty()) {
    return mistake;
  }
  if (routing.layout == ExpertLayout::rank_major) {
    return {.text =
                "rows of rank_major are sums over the experts of a rank\napply the weights "
                "before, and give none"};
  }
  const auto k = at(routing.k);
  experts::expect(mistake, "weights", weights.size_bytes(), routing.tokens, k * sizeof(float));
  for (std::size_t i = 0; i < weights.size() && mistake.text.empty(); ++i) {
    if (!std::isfinite(weights[i]) && routing.places.places[i].rank >= 0) {
      mistake.text = "the weight of token " + std::to_string(i / k) + " at place " +
                     std::to_string(i % k) + " is " + std::to_string(weights[i]) +
                     "\nlook at the router";
    }
  }
  return mistake;
}

// Sends this rank's rows to the ranks of their tokens on other hosts.
void send_back(detail::ExchangeState& state, const detail::StartedCall& call) {
  const detail::RoutingState& routing = *call.routing;
  const experts::Travel& travel = call.travels[0];
  const auto ranks = at(state.comm->size());
  std::vector<std::vector<const std::byte*>> back(ranks);
  for (const experts::Arrival& arrival : routing.places.arrivals) {
    if (!state.hosts.is_here(arrival.source)) {
      back[at(arrival.source)].push_back(travel.in.data() + at(arrival.row) * travel.row_bytes);
    }
  }
  std::vector<std::size_t> expected(ranks, 0);
  std::size_t rows = 0;
  for (const Place& place : routing.places.places) {
    if (place.rank >= 0 && !state.hosts.is_here(place.rank)) {
      ++expected[at(place.rank)];
      ++rows;
    }
  }
  experts::SentRows& sent = state.sent[0];
  sent.own.resize(rows * travel.row_bytes);
  sent.incoming = sent.own;
  experts::start_rows(state, back, expected, travel.row_bytes, sent);
}

std::unique_ptr<detail::StartedCall> start_rows_back(detail::ExchangeState& state,
                                                     const detail::RoutingState* routing,
                                                     const CombineRows& combine,
                                                     std::uint32_t details, Mistake mistake,
                                                     bool in_halves) {
  std::vector<experts::Travel> travels;
  if (mistake.text.empty()) {
    const std::size_t row_bytes = combine.hidden * size_of(combine.dtype);
    travels.push_back(experts::travel_of(state, 0,
                                         combine.rows.first(at(routing->places.rows) * row_bytes),
                                         row_bytes, combine.coding, combine.dtype, mistake));
  }
  auto call = experts::start_call(state, routing, std::move(travels),
                                  {.kind = CallKind::combine, .details = details},
                                  std::move(mistake), in_halves);
  call->combine = combine;
  if (!state.hosts.single()) {
    send_back(state, *call);
  }
  return call;
}

// Where the row of each place is now, in the order of the places; nullptr: it has none.
std::vector<const std::byte*> finish_rows_back(detail::ExchangeState& state,
                                               detail::StartedCall& call) {
  experts::finish_opening(state, call);
  const experts::Travel& travel = call.travels[0];
  const std::vector<Place>& places = call.routing->places.places;
  std::vector<const std::byte*> at_place(places.size(), nullptr);
  const auto found = experts::find_published(state, call.openings, 0, travel.in.data());
  std::vector<const std::byte*> next =  // of each rank on another host, its next row
      state.hosts.single() ? std::vector<const std::byte*>() : experts::finish_rows(state.sent[0]);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    if (place.rank < 0) {
      continue;
    }
    if (state.hosts.is_here(place.rank)) {
      at_place[i] = found[at(place.rank)] + at(place.row) * travel.row_bytes;
    } else {
      const std::byte*& one = next[at(place.rank)];
      at_place[i] = std::exchange(one, one + travel.row_bytes);
    }
  }
  return at_place;
}

std::uint32_t details_of(Dtype dtype, bool gradient) {
  return static_cast<std::uint32_t>(dtype) | (gradient ? 0x100U : 0U);
}

// The rows of one token, and their weights.
struct TokenRows {
  explicit TokenRows(std::size_t k) : rows(k), factors(k) {}
  void find(const CombineRows& combine, const std::vector<const std::byte*>& at_place,
            std::size_t token) {
    used = 0;
    const std::size_t k = rows.size();
    for (std::size_t i = token * k; i < std::min((token + 1) * k, at_place.size()); ++i) {
      if (at_place[i] != nullptr) {
        rows[used] = at_place[i];
        factors[used] = combine.weights.empty() ? 1.0F : combine.weights[i];
        ++used;
      }
    }
  }
  int count() const { return static_cast<int>(used); }

  std::vector<const void*> rows;
  std::vector<float> factors;
  std::size_t used = 0;
};

void sum_rows(const CombineRows& combine, const detail::RoutingState& routing,
              const experts::Travel& travel, const std::vector<const std::byte*>& at_place) {
  const kernels::WeightedSumFunction sum =
      travel.is_coded() ? travel.functions.weighted_sum : kernels::find_weighted_sum(combine.dtype);
  const std::size_t row_bytes = combine.hidden * size_of(combine.dtype);
  TokenRows now(at(routing.k));
  TokenRows next(at(routing.k));
  next.find(combine, at_place, 0);
  for (std::size_t token = 0; token < routing.tokens; ++token) {
    std::swap(now, next);
    next.find(combine, at_place, token + 1);
    const std::byte* residual =
        combine.residual.empty() ? nullptr : combine.residual.data() + token * row_bytes;
    std::byte* const out = combine.out.data() + token * row_bytes;
    const float* factors = combine.weights.empty() ? nullptr : now.factors.data();
    if (travel.is_rounded) {
      travel.functions.rounded_sum(out, residual, now.rows.data(), factors, now.count(),
                                   combine.hidden, next.rows.data(), next.count());
    } else {
      sum(out, residual, now.rows.data(), factors, now.count(), combine.hidden);
    }
  }
}

std::unique_ptr<detail::StartedCall> start_combine(detail::ExchangeState& state,
                                                   const detail::RoutingState* routing,
                                                   const CombineRows& combine, bool in_halves) {
  Mistake mistake = experts::find_mistake(state, routing);
  if (mistake.text.empty()) {
    mistake = check(*routing, combine);
  }
  if (mistake.text.empty()) {
    mistake = check_weights(*routing, combine.weights);
  }
  return start_rows_back(state, routing, combine, details_of(combine.dtype, false),
                         std::move(mistake), in_halves);
}

void finish_combine(detail::ExchangeState& state, std::unique_ptr<detail::StartedCall> call) {
  const auto at_place = finish_rows_back(state, *call);
  experts::expect_unchanged(state, *call);
  sum_rows(call->combine, *call->routing, call->travels[0], at_place);
  experts::end_call(state);
}

}  // namespace

void Exchange::combine(const Routing& routing, const CombineRows& combine) {
  const experts::LoadLabel label(*state_->comm, routing.state_.get());
  unisono::finish_combine(*state_,
                          unisono::start_combine(*state_, routing.state_.get(), combine, false));
}

Request Exchange::combine_async(const Routing& routing, const CombineRows& combine) {
  return experts::start_async(*state_, routing.state_.get(),
                              [made = routing.state_.get(), combine](detail::ExchangeState& state) {
                                unisono::finish_combine(
                                    state, unisono::start_combine(state, made, combine, false));
                              });
}

void Exchange::start_combine(const Routing& routing, const CombineRows& combine) {
  const experts::LoadLabel label(*state_->comm, routing.state_.get());
  state_->started = unisono::start_combine(*state_, routing.state_.get(), combine, true);
}

void Exchange::finish_combine() {
  std::unique_ptr<detail::StartedCall> call = experts::take_started(*state_, CallKind::combine);
  const experts::LoadLabel label(*state_->comm, call->routing);
  unisono::finish_combine(*state_, std::move(call));
}

void Exchange::combine_backward(const Routing& routing, const CombineGradient& gradient) {
  const detail::RoutingState* made = routing.state_.get();
  const experts::LoadLabel label(*state_->comm, made);
  const std::size_t row_bytes = gradient.hidden * size_of(gradient.dtype);
  const bool weighted = made != nullptr && made->layout != ExpertLayout::rank_major;
  const kernels::DotFunction dot = kernels::find_dot(gradient.dtype);
  Mistake mistake = experts::find_mistake(*state_, made);
  if (mistake.text.empty() && dot == nullptr) {
    mistake.text = std::string(to_string(gradient.dtype)) + " has no gradients\ngive floats";
  }
  if (mistake.text.empty()) {
    mistake = check_weights(*made, gradient.weights);
  }
  std::vector<float> weights;
  const std::vector<float> ones(
      weighted && gradient.weights.empty() ? made->places.places.size() : 0, 1.0F);
  std::vector<Payload> payloads = {
      {.in = gradient.out_gradient, .out = gradient.rows_gradient, .row_bytes = row_bytes}};
  if (weighted) {
    if (mistake.text.empty()) {
      experts::expect_rows(mistake, "rows", gradient.rows.size(), *made, row_bytes);
    }
    experts::expect(mistake, "weights_gradient", gradient.weights_gradient.size_bytes(),
                    made->places.places.size(), sizeof(float));
    weights.resize(routing.rows());
    payloads.push_back(
        {.in = std::as_bytes(gradient.weights.empty() ? std::span(ones) : gradient.weights),
         .out = std::as_writable_bytes(std::span(weights)),
         .row_bytes = sizeof(float),
         .one_a_slot = true});
  }
  const std::uint32_t details = details_of(gradient.dtype, true);
  experts::finish_dispatch(
      *state_, experts::start_dispatch(*state_, made, payloads, details, mistake, false));
  const kernels::ScaleFunction multiply = kernels::find_multiply(gradient.dtype);
  for (std::size_t row = 0; row < weights.size(); ++row) {
    std::byte* to = gradient.rows_gradient.data() + row * row_bytes;
    multiply(to, to, gradient.hidden, static_cast<double>(weights[row]));
  }
  if (!weighted) {
    return;
  }
  const auto call = start_rows_back(
      *state_, made, {.rows = gradient.rows, .dtype = gradient.dtype, .hidden = gradient.hidden},
      details, {}, false);
  const auto at_place = finish_rows_back(*state_, *call);
  for (std::size_t i = 0; i < at_place.size(); ++i) {
    const std::byte* mine = gradient.out_gradient.data() + i / at(made->k) * row_bytes;
    gradient.weights_gradient[i] =
        at_place[i] == nullptr ? 0.0F : dot(mine, at_place[i], gradient.hidden);
  }
  experts::end_call(*state_);
}

}  // namespace unisono
