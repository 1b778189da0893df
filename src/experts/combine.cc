// Combine: sums the outputs of each token's experts, and computes the gradients of that sum.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "experts/async.h"
#include "experts/dispatch.h"
#include "experts/load.h"
#include "experts/rows.h"
#include "kernels/kernels.h"
#include "kernels/weighted_sum.h"

namespace unisono {
namespace {

using experts::CallHeader;
using experts::CallKind;
using experts::Mistake;
using experts::Place;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

Mistake check(const detail::RoutingState& routing, const CombineRows& combine) {
  if (kernels::find_weighted_sum(combine.dtype) == nullptr) {
    return {.text = std::string(to_string(combine.dtype)) +
                    " rows cannot be weighted\nuse a float type"};
  }
  Mistake mistake;
  const std::size_t row_bytes = experts::bytes_of(combine.hidden, size_of(combine.dtype));
  experts::expect_rows(mistake, "rows", combine.rows.size(), routing, row_bytes);
  experts::expect(mistake, "out", combine.out.size(), routing.tokens, row_bytes);
  if (!combine.residual.empty()) {
    experts::expect(mistake, "residual", combine.residual.size(), routing.tokens, row_bytes);
  }
  experts::expect_coding(mistake, combine.coding, combine.dtype, row_bytes);
  experts::expect_apart(mistake, "out", combine.out, "rows", combine.rows);
  experts::expect_apart(mistake, "out", combine.out, "weights", std::as_bytes(combine.weights));
  if (combine.residual.data() != combine.out.data()) {
    experts::expect_apart(mistake, "out", combine.out, "residual", combine.residual);
  }
  return mistake;
}

Mistake check_weights(const detail::RoutingState& routing, std::span<const float> weights) {
  Mistake mistake;
  if (weights.empty()) {
    return mistake;
  }
  if (routing.layout == ExpertLayout::rank_major) {
    return {.text =
                "rank_major rows are sums over a rank's experts\napply the weights before "
                "combine, and pass no weights"};
  }
  const auto k = at(routing.k);
  experts::expect(mistake, "weights", weights.size_bytes(), routing.tokens, k * sizeof(float));
  for (std::size_t i = 0; i < weights.size() && mistake.text.empty(); ++i) {
    if (!std::isfinite(weights[i]) && routing.places.places[i].rank >= 0) {
      mistake.text = "the weight of token " + std::to_string(i / k) + " at place " +
                     std::to_string(i % k) + " is " + std::to_string(weights[i]) +
                     "\ncheck the router";
    }
  }
  return mistake;
}

// Rows to send to ranks on other hosts, and the number of rows expected from each of them.
struct ReturnRows {
  std::vector<std::vector<const std::byte*>> rows;
  std::vector<std::size_t> expected;
};

ReturnRows return_rows(const detail::ExpertExchangeState& state,
                       const detail::RoutingState& routing, const experts::RowTransfer& transfer) {
  const auto ranks = at(state.comm->size());
  ReturnRows back{.rows = std::vector<std::vector<const std::byte*>>(ranks),
                  .expected = std::vector<std::size_t>(ranks, 0)};
  for (const experts::Arrival& arrival : routing.places.arrivals) {
    if (!state.hosts.is_here(arrival.source)) {
      back.rows[at(arrival.source)].push_back(transfer.in.data() +
                                              at(arrival.row) * transfer.row_bytes);
    }
  }
  for (const Place& place : routing.places.places) {
    if (place.rank >= 0 && !state.hosts.is_here(place.rank)) {
      ++back.expected[at(place.rank)];
    }
  }
  return back;
}

void prepare_back(detail::ExpertExchangeState& state, const ReturnRows& back, std::size_t row_bytes,
                  Mistake& mistake) {
  std::size_t sent = 0;
  for (const auto& rows : back.rows) {
    sent += rows.size();
  }
  const std::size_t come =
      std::accumulate(back.expected.begin(), back.expected.end(), std::size_t{0});
  experts::prepare_rows(state.sent[0], sent * row_bytes, come * row_bytes, mistake);
  state.sent[0].incoming = state.sent[0].own;
}

std::unique_ptr<detail::StartedCall> start_rows_back(detail::ExpertExchangeState& state,
                                                     const detail::RoutingState* routing,
                                                     const CombineRows& combine, CallKind kind,
                                                     Mistake mistake) {
  std::vector<experts::RowTransfer> transfers;
  ReturnRows back;
  if (mistake.text.empty()) {
    const std::size_t row_bytes = combine.hidden * size_of(combine.dtype);
    transfers.push_back(
        experts::row_transfer_of(state, 0, combine.rows.first(at(routing->places.rows) * row_bytes),
                                 row_bytes, combine.coding, combine.dtype, mistake));
    if (!state.hosts.single() && mistake.text.empty()) {
      back = return_rows(state, *routing, transfers[0]);
      prepare_back(state, back, transfers[0].row_bytes, mistake);
    }
  }
  auto call =
      experts::start_call(state, routing, std::move(transfers), {.kind = kind}, std::move(mistake));
  call->combine = combine;
  if (!state.hosts.single()) {
    experts::start_rows(state, back.rows, back.expected, call->transfers[0].row_bytes,
                        state.sent[0]);
  }
  return call;
}

// Returns the address of each place's row, in the order of the places; nullptr if a place has no
// row.
std::vector<const std::byte*> finish_rows_back(detail::ExpertExchangeState& state,
                                               detail::StartedCall& call) {
  const experts::RowTransfer& transfer = call.transfers[0];
  const std::vector<Place>& places = call.routing->places.places;
  std::vector<const std::byte*> at_place(places.size(), nullptr);
  const auto found = experts::find_published(state, call.headers, 0, transfer.in.data());
  std::vector<const std::byte*> next =  // next row from each rank on another host
      state.hosts.single() ? std::vector<const std::byte*>() : experts::finish_rows(state.sent[0]);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    if (place.rank < 0) {
      continue;
    }
    if (state.hosts.is_here(place.rank)) {
      at_place[i] = found[at(place.rank)] + at(place.row) * transfer.row_bytes;
    } else {
      const std::byte*& one = next[at(place.rank)];
      at_place[i] = std::exchange(one, one + transfer.row_bytes);
    }
  }
  return at_place;
}

// The rows of one token, with their weights.
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
              const experts::RowTransfer& transfer, const std::vector<const std::byte*>& at_place) {
  const kernels::WeightedSumFunction sum = transfer.is_coded()
                                               ? transfer.functions.weighted_sum
                                               : kernels::find_weighted_sum(combine.dtype);
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
    if (transfer.is_rounded) {
      transfer.functions.rounded_sum(out, residual, now.rows.data(), factors, now.count(),
                                     combine.hidden, next.rows.data(), next.count());
    } else {
      sum(out, residual, now.rows.data(), factors, now.count(), combine.hidden);
    }
  }
}

void combine_rows(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
                  const CombineRows& combine) {
  Mistake mistake = experts::find_mistake(state, routing);
  if (mistake.text.empty()) {
    mistake = check(*routing, combine);
  }
  if (mistake.text.empty()) {
    mistake = check_weights(*routing, combine.weights);
  }
  const auto call = start_rows_back(state, routing, combine, CallKind::combine, std::move(mistake));
  const auto at_place = finish_rows_back(state, *call);
  sum_rows(call->combine, *call->routing, call->transfers[0], at_place);
  experts::end_call(state);
}

Mistake check(const detail::RoutingState& routing, const CombineGradient& gradient) {
  if (kernels::find_dot(gradient.dtype) == nullptr) {
    return {.text = std::string(to_string(gradient.dtype)) + " has no gradients\nuse a float type"};
  }
  Mistake mistake = check_weights(routing, gradient.weights);
  const std::size_t row_bytes = experts::bytes_of(gradient.hidden, size_of(gradient.dtype));
  const std::size_t places =
      routing.layout == ExpertLayout::rank_major ? 0 : routing.places.places.size();
  experts::expect(mistake, "weights_gradient", gradient.weights_gradient.size_bytes(), places,
                  sizeof(float));
  if (routing.layout == ExpertLayout::rank_major) {
    experts::expect(mistake, "rows", gradient.rows.size(), 0, row_bytes);
  } else {
    experts::expect_rows(mistake, "rows", gradient.rows.size(), routing, row_bytes);
  }
  const std::span<const std::byte> of_weights = std::as_bytes(gradient.weights_gradient);
  for (const auto& [name, used] :
       {std::pair("rows", gradient.rows), std::pair("out_gradient", gradient.out_gradient),
        std::pair("weights", std::as_bytes(gradient.weights))}) {
    experts::expect_apart(mistake, "rows_gradient", gradient.rows_gradient, name, used);
    experts::expect_apart(mistake, "weights_gradient", of_weights, name, used);
  }
  experts::expect_apart(mistake, "rows_gradient", gradient.rows_gradient, "weights_gradient",
                        of_weights);
  return mistake;
}

// Dispatches out_gradient and the weight of each place to the rows, and multiplies the two.
void spread_gradient(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
                     const CombineGradient& gradient, Mistake mistake) {
  const bool weighted = routing != nullptr && routing->layout != ExpertLayout::rank_major;
  const std::size_t row_bytes = experts::bytes_of(gradient.hidden, size_of(gradient.dtype));
  std::vector<Payload> payloads = {{.in = gradient.out_gradient,
                                    .out = gradient.rows_gradient,
                                    .row_bytes = row_bytes,
                                    .dtype = gradient.dtype}};
  std::vector<float> weights;  // one per row
  std::vector<float> ones;
  if (weighted) {
    ones.assign(gradient.weights.empty() ? routing->places.places.size() : 0, 1.0F);
    weights.resize(at(routing->places.rows));
    payloads.push_back(
        {.in = std::as_bytes(gradient.weights.empty() ? std::span(ones) : gradient.weights),
         .out = std::as_writable_bytes(std::span(weights)),
         .row_bytes = sizeof(float),
         .one_a_slot = true,
         .dtype = Dtype::f32});
  }
  const experts::DispatchForm form{.kind = CallKind::combine_backward,
                                   .names = {.in = "out_gradient", .out = "rows_gradient"}};
  experts::dispatch(state, routing, payloads, form, std::move(mistake));
  const kernels::ScaleFunction multiply = kernels::find_multiply(gradient.dtype);
  for (std::size_t row = 0; row < weights.size(); ++row) {
    std::byte* const to = gradient.rows_gradient.data() + row * row_bytes;
    multiply(to, to, gradient.hidden, static_cast<double>(weights[row]));
  }
}

// Computes the inner products of out_gradient and the rows.
void find_weights_gradient(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
                           const CombineGradient& gradient) {
  const kernels::DotFunction dot = kernels::find_dot(gradient.dtype);
  const std::size_t row_bytes = gradient.hidden * size_of(gradient.dtype);
  const auto call = start_rows_back(
      state, routing, {.rows = gradient.rows, .dtype = gradient.dtype, .hidden = gradient.hidden},
      CallKind::combine_backward, {});
  const auto at_place = finish_rows_back(state, *call);
  for (std::size_t i = 0; i < at_place.size(); ++i) {
    const std::byte* mine = gradient.out_gradient.data() + i / at(routing->k) * row_bytes;
    gradient.weights_gradient[i] =
        at_place[i] == nullptr ? 0.0F : dot(mine, at_place[i], gradient.hidden);
  }
  experts::end_call(state);
}

}  // namespace

void ExpertExchange::combine(const Routing& routing, const CombineRows& combine) {
  const experts::LoadLabel label(*state_->comm, routing.state_.get());
  combine_rows(*state_, routing.state_.get(), combine);
}

Request ExpertExchange::combine_async(const Routing& routing, const CombineRows& combine) {
  return experts::start_async(
      *state_, routing.state_.get(),
      [made = routing.state_.get(), combine](detail::ExpertExchangeState& state) {
        combine_rows(state, made, combine);
      });
}

void ExpertExchange::combine_backward(const Routing& routing, const CombineGradient& gradient) {
  const detail::RoutingState* made = routing.state_.get();
  const experts::LoadLabel label(*state_->comm, made);
  Mistake mistake = experts::find_mistake(*state_, made);
  if (mistake.text.empty()) {
    mistake = check(*made, gradient);
  }
  spread_gradient(*state_, made, gradient, std::move(mistake));
  if (made->layout != ExpertLayout::rank_major) {
    find_weights_gradient(*state_, made, gradient);
  }
}

}  // namespace unisono
