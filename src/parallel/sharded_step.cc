// A training step on a sharded state: gradients are reduced and clipped, and AdamW is applied.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "parallel/sharded_impl.h"
#include "unisono/exact_sum.hpp"

namespace unisono::parallel {

float Elements::get(std::size_t element) const {
  if (dtype_ == Dtype::f32) {
    float value = 0;
    std::memcpy(&value, bytes_.data() + element * sizeof(value), sizeof(value));
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes_.data() + element * sizeof(bits), sizeof(bits));
  return dtype_ == Dtype::f16 ? to_float(f16{bits}) : to_float(bf16{bits});
}

void Elements::set(std::size_t element, float value) {
  if (dtype_ == Dtype::f32) {
    std::memcpy(at(element), &value, sizeof(value));
    return;
  }
  const std::uint16_t bits = dtype_ == Dtype::f16 ? to_f16(value).bits : to_bf16(value).bits;
  std::memcpy(at(element), &bits, sizeof(bits));
}

void ShardedState::State::check_leaves(const std::vector<Leaves>& leaves) const {
  if (!leaves.empty() && leaves.size() != ranks() * replicas()) {
    refuse("sharded state",
           "got the leaves of " + std::to_string(leaves.size()) + " ranks, not of " +
               std::to_string(ranks() * replicas()),
           "list the leaves of each rank, by replica, then by rank of the axis");
  }
}

// Returns this rank's running sum.
TreeSum& ShardedState::State::tree(FlatUnit& one) const {
  if (!one.tree) {
    std::size_t all = 0;
    for (const Leaves& leaves : one.leaves) {
      all += leaves.count;
    }
    one.tree.emplace(TreeSum::Shape{.count = one.padded,
                                    .leaves = all,
                                    .first = one.leaves[replica() * ranks() + rank()].first});
  }
  return *one.tree;
}

void ShardedState::State::start_tree(FlatUnit& one) {
  const std::vector<std::size_t> parts(ranks(), one.share);
  try {
    one.scattering = std::move(tree(one)).scatter_async(
        axis, std::span(one.leaves).subspan(replica() * ranks(), ranks()), parts);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage) {  // otherwise the other ranks would wait forever
      axis.abort("rank " + std::to_string(axis.rank()) + ": " + std::string(error.summary()));
    }
    throw;
  }
  one.tree.reset();
}

void ShardedState::State::finish_tree(FlatUnit& one) {
  std::vector<float> mine(one.share);
  std::size_t all = 0;
  waits.time([&] {
    const TreeSum part = one.scattering.finish();
    all = part.shape().leaves;
    if (options.replicas == nullptr) {
      part.sum(mine.data());
    } else {
      std::vector<Leaves> of_replicas;
      for (std::size_t i = 0; i < replicas(); ++i) {
        Leaves together;
        for (const Leaves& leaves : std::span(one.leaves).subspan(i * ranks(), ranks())) {
          if (leaves.count != 0) {
            together.first =
                together.count == 0 ? leaves.first : std::min(together.first, leaves.first);
            together.count += leaves.count;
          }
        }
        of_replicas.push_back(together);
      }
      part.all_reduce(*options.replicas, of_replicas, mine.data());
    }
  });
  if (options.op == ReduceOp::avg) {
    for (float& value : mine) {
      value /= static_cast<float>(all);
    }
  }
  std::vector<float> whole;
  if (options.stage == 0) {
    whole.resize(one.padded);
    waits.time([&] { axis.all_gather(mine, whole); });
  } else if (options.stage >= 2) {
    one.reduced.make(options.dtype, one.share);
  }
  const std::span<const float> values = options.stage == 0 ? whole : mine;
  convert(values, AnySpan(sums(one).at(sums_from(one)), values.size(), options.dtype));
}

void ShardedState::State::start_reducing(FlatUnit& one) {
  if (!one.leaves.empty()) {
    start_tree(one);
    return;
  }
  Call call{.collective = Collective::reduce_scatter,
            .in = one.gradients.at(0),
            .out = one.gradients.at(first(one)),  // in place
            .count = one.share,
            .dtype = options.dtype,
            .reduction = options.op};
  if (options.stage == 0) {
    call.collective = Collective::all_reduce;
    call.count = one.padded;
  } else if (options.stage >= 2) {
    one.reduced.make(options.dtype, one.share);
    call.out = one.reduced.at(0);
  }
  one.sum = SumOnce(axis, call);
  one.reducing = axis.run_async(one.sum.call());
}

void ShardedState::State::finish_reducing(FlatUnit& one) {
  if (one.leaves.empty()) {
    waits.time([&] { one.reducing.wait(); });
    one.sum.finish();
    one.sum = {};
  } else {
    finish_tree(one);
  }
  if (options.stage >= 2) {
    one.gradients.free();
  }
  if (options.replicas != nullptr && one.leaves.empty()) {
    std::byte* mine = sums(one).at(sums_from(one));
    SumOnce sum(*options.replicas, {.collective = Collective::all_reduce,
                                    .in = mine,
                                    .out = mine,
                                    .count = updated(one),
                                    .dtype = options.dtype,
                                    .reduction = options.op});
    waits.time([&] { options.replicas->run(sum.call()); });
    sum.finish();
  }
}

double ShardedState::State::norm() {
  ExactSum squares;
  for (FlatUnit& one : units) {
    const std::size_t begin = first(one);
    one.for_each_in(begin, begin + updated(one),
                    [&](const Parameter& parameter, std::size_t from, std::size_t to) {
                      if (parameter.counted) {
                        const ReadFloats own(ConstAnySpan(
                            sums(one).at(from - begin + sums_from(one)), to - from, options.dtype));
                        squares.add_squares(own.span());
                      }
                    });
  }
  waits.time([&] {
    if (options.stage != 0) {
      squares.all_reduce(axis);
    }
    if (options.model != nullptr) {
      squares.all_reduce(*options.model);
    }
  });
  return std::sqrt(squares.value());
}

void ShardedState::State::update(FlatUnit& one, double scale) {
  const AdamW& adam = options.optimizer;
  const double fix1 = 1 - std::pow(adam.beta1, static_cast<double>(steps));
  const double fix2 = 1 - std::pow(adam.beta2, static_cast<double>(steps));
  const auto rate = static_cast<float>(adam.rate / fix1);
  const auto beta1 = static_cast<float>(adam.beta1);
  const auto beta2 = static_cast<float>(adam.beta2);
  const auto unbias = static_cast<float>(1 / fix2);
  const auto epsilon = static_cast<float>(adam.epsilon);
  const std::size_t begin = first(one);
  Elements& target = held(one);
  const Elements& gradients = sums(one);
  one.for_each_in(
      begin, begin + updated(one),
      [&](const Parameter& parameter, std::size_t from, std::size_t to) {
        const auto decay = static_cast<float>(parameter.decays ? adam.rate * adam.decay : 0);
        for (std::size_t i = from; i < to; ++i) {
          const std::size_t k = i - begin;
          const float gradient = gradients.get(k + sums_from(one)) * static_cast<float>(scale);
          one.mean[k] = beta1 * one.mean[k] + (1 - beta1) * gradient;
          one.variance[k] = beta2 * one.variance[k] + (1 - beta2) * gradient * gradient;
          float value = mixed() ? one.master[k] : target.get(k + held_from(one));
          value -=
              decay * value + rate * one.mean[k] / (std::sqrt(one.variance[k] * unbias) + epsilon);
          if (mixed()) {
            one.master[k] = value;
          }
          target.set(k + held_from(one), value);
        }
      });
}

double ShardedState::step() {
  std::string missing;
  for (const FlatUnit& one : state_->units) {
    for (const Parameter& parameter : one.list) {
      missing += one.is_ready ? "" : (missing.empty() ? "" : ", ") + parameter.name;
    }
  }
  if (!missing.empty()) {
    const std::string what = "the gradients of " + missing + " never became ready";
    state_->axis.abort("rank " + std::to_string(state_->axis.rank()) + ": " + what);
    refuse("sharded state", what, "call gradients_ready() for every unit before step()");
  }
  state_->waits.reset();
  ++state_->steps;
  wait_gradients();
  const double norm = state_->norm();
  const double limit = state_->options.max_norm;
  const double scale = limit > 0 && norm > limit ? limit / norm : 1;
  for (FlatUnit& one : state_->units) {
    state_->update(one, scale);
    one.is_ready = false;
    one.reduced.free();
    if (state_->options.stage < 2) {
      one.gradients.make(state_->options.dtype, one.padded);
    }
    if (state_->options.stage == 3) {
      one.parameters.free();
    } else if (state_->options.stage != 0) {
      one.gathering = state_->axis.run_async(
          state_->gather_call(one, one.parameters.at(state_->first(one)), one.parameters.at(0)));
      one.is_gathering = true;
    }
  }
  for (FlatUnit& one : state_->units) {
    state_->finish_gathering(one);
  }
  return norm;
}

}  // namespace unisono::parallel
