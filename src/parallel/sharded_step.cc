// A training step on a sharded state: gradients are reduced and clipped, and AdamW is applied.
#include <array>
#include <cmath>
#include <cstring>

#include "parallel/sharded_impl.h"

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

void ShardedState::State::start_reducing(FlatUnit& one) {
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
  waits.time([&] { one.reducing.wait(); });
  one.sum.finish();
  one.sum = {};
  if (options.stage >= 2) {
    one.gradients.free();
  }
  if (options.replicas != nullptr) {
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
  double squares = 0;
  for (FlatUnit& one : units) {
    const std::size_t begin = first(one);
    const Elements& gradients = sums(one);
    one.for_each_in(begin, begin + updated(one),
                    [&](const Parameter& parameter, std::size_t from, std::size_t to) {
                      double own = 0;
                      for (std::size_t i = from; i < to; ++i) {
                        const double value = gradients.get(i - begin + sums_from(one));
                        own += value * value;
                      }
                      squares += parameter.counted ? own : 0;
                    });
  }
  std::array<double, 1> all = {squares};
  waits.time([&] {
    if (options.stage != 0) {
      axis.all_reduce(all, sum);
    }
    if (options.model != nullptr) {
      options.model->all_reduce(all, sum);
    }
  });
  return std::sqrt(all[0]);
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
    refuse_state(what, "call gradients_ready() for every unit before step()");
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
