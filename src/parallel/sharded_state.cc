// ZeRO on flat units: who holds what, and when it is gathered and reduced.
#include "unisono/parallel/sharded_state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <utility>

#include "base/words.h"
#include "parallel/flat_unit.h"
#include "parallel/stopwatch.h"

namespace unisono::parallel {
namespace {

constexpr std::size_t kMostUnderWay = 2;

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::usage, "sharded state: " + what + "\n" + next);
}

}  // namespace

float Elements::get(std::size_t element) const {
  if (dtype_ == Dtype::f32) {
    float value = 0;
    std::memcpy(&value, bytes_.data() + element * sizeof(value), sizeof(value));
    return value;
  }
  bf16 value;
  std::memcpy(&value, bytes_.data() + element * sizeof(value), sizeof(value));
  return to_float(value);
}

void Elements::set(std::size_t element, float value) {
  if (dtype_ == Dtype::f32) {
    std::memcpy(at(element), &value, sizeof(value));
    return;
  }
  const bf16 narrow = to_bf16(value);
  std::memcpy(at(element), &narrow, sizeof(narrow));
}

struct ShardedState::State {
  Communicator& axis;
  ShardedOptions options;
  std::vector<FlatUnit> units = {};
  std::deque<std::size_t> reducing = {};  // units whose reductions are under way, in order
  Stopwatch waits = {};
  std::int64_t steps = 0;

  bool mixed() const { return options.dtype == Dtype::bf16; }
  std::size_t ranks() const { return static_cast<std::size_t>(axis.size()); }
  std::size_t rank() const { return static_cast<std::size_t>(axis.rank()); }
  FlatUnit& unit(std::size_t index) {
    if (index >= units.size()) {
      refuse("there is no unit " + std::to_string(index) + " of " + std::to_string(units.size()),
             "units count from 0");
    }
    return units[index];
  }
  // The elements that this rank updates.
  std::size_t first(const FlatUnit& one) const {
    return options.stage == 0 ? 0 : rank() * one.share;
  }
  std::size_t updated(const FlatUnit& one) const {
    return options.stage == 0 ? one.padded : one.share;
  }
  Elements& held(FlatUnit& one) const { return options.stage == 3 ? one.shard : one.parameters; }
  std::size_t held_from(const FlatUnit& one) const { return options.stage == 3 ? 0 : first(one); }

  Call gather_call(FlatUnit& one, const void* in, void* out) const {
    return {.collective = Collective::all_gather,
            .in = in,
            .out = out,
            .count = one.share,
            .dtype = options.dtype};
  }
  void start_gathering(FlatUnit& one) {
    one.parameters.make(options.dtype, one.padded);
    one.gathering = axis.run_async(gather_call(one, one.shard.at(0), one.parameters.at(0)));
    one.is_gathering = true;
  }
  void finish_gathering(FlatUnit& one) {
    if (one.is_gathering) {
      waits.time([&] { one.gathering.wait(); });
      one.is_gathering = false;
    }
  }
  void start_reducing(FlatUnit& one);
  void finish_reducing(FlatUnit& one);
  void finish_first() {
    finish_reducing(units[reducing.front()]);
    reducing.pop_front();
  }
  // This rank's part of the reduced gradients, and where it begins in its memory.
  Elements& sums(FlatUnit& one) const { return options.stage >= 2 ? one.reduced : one.gradients; }
  std::size_t sums_from(const FlatUnit& one) const { return options.stage >= 2 ? 0 : first(one); }
  double norm();
  void update(FlatUnit& one, double scale);
};

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
  one.reducing = axis.run_async(call);
}

void ShardedState::State::finish_reducing(FlatUnit& one) {
  waits.time([&] { one.reducing.wait(); });
  if (options.stage >= 2) {
    one.gradients.free();
  }
  if (options.replicas != nullptr) {
    std::byte* mine = sums(one).at(sums_from(one));
    waits.time([&] {
      options.replicas->run({.collective = Collective::all_reduce,
                             .in = mine,
                             .out = mine,
                             .count = updated(one),
                             .dtype = options.dtype,
                             .reduction = options.op});
    });
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

ShardedState::ShardedState(Communicator& axis, std::vector<std::vector<Parameter>> units,
                           const ShardedOptions& options)
    : state_(new State{.axis = axis, .options = options}) {
  if (options.stage < 0 || options.stage > 3) {
    refuse("there is no stage " + std::to_string(options.stage), "stages are 0, 1, 2 and 3");
  }
  if (options.dtype != Dtype::f32 && options.dtype != Dtype::bf16) {
    refuse("parameters of " + std::string(to_string(options.dtype)), "use f32 or bf16");
  }
  if (options.op != ReduceOp::avg && options.op != ReduceOp::sum) {
    refuse("gradients are combined by " + std::string(to_string(options.op)), "use avg or sum");
  }
  const std::size_t n = state_->ranks();
  for (std::vector<Parameter>& list : units) {
    FlatUnit one;
    for (const Parameter& parameter : list) {
      one.count += parameter.count;
    }
    one.list = std::move(list);
    one.share = (one.count + n - 1) / n;
    one.padded = one.share * n;
    if (options.stage == 3) {
      one.shard.make(options.dtype, one.share);
    } else {
      one.parameters.make(options.dtype, one.padded);
    }
    if (options.stage < 2) {
      one.gradients.make(options.dtype, one.padded);
    }
    const std::size_t updated = state_->updated(one);
    one.master.resize(state_->mixed() ? updated : 0);
    one.mean.resize(updated);
    one.variance.resize(updated);
    state_->units.push_back(std::move(one));
  }
}
ShardedState::ShardedState(ShardedState&&) noexcept = default;
ShardedState& ShardedState::operator=(ShardedState&&) noexcept = default;
ShardedState::~ShardedState() = default;

std::size_t ShardedState::units() const {
  return state_->units.size();
}
std::size_t ShardedState::count(std::size_t unit) const {
  return state_->unit(unit).count;
}

void ShardedState::set(std::size_t unit, std::span<const float> values) {
  FlatUnit& one = state_->unit(unit);
  if (values.size() != one.count) {
    refuse(std::to_string(values.size()) + " values for unit " + std::to_string(unit) + " of " +
               std::to_string(one.count) + " elements",
           "give all of its parameters, one after the other");
  }
  Elements& target = state_->held(one);
  const bool sharded = state_->options.stage == 3;
  const std::size_t begin = sharded ? state_->first(one) : 0;
  const std::size_t end = sharded ? std::min(begin + one.share, one.count) : one.count;
  for (std::size_t i = begin; i < end; ++i) {
    target.set(i - begin, values[i]);
  }
  const std::size_t first = state_->first(one);
  for (std::size_t i = 0; i < one.master.size() && first + i < one.count; ++i) {
    one.master[i] = values[first + i];
  }
}

std::vector<float> ShardedState::whole(std::size_t unit) {
  FlatUnit& one = state_->unit(unit);
  std::vector<float> mine(state_->updated(one));
  const Elements& target = state_->held(one);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = state_->mixed() ? one.master[i] : target.get(i + state_->held_from(one));
  }
  std::vector<float> all = mine;
  if (state_->options.stage != 0) {
    all.resize(one.padded);
    state_->axis.all_gather(mine, all);
  }
  all.resize(one.count);
  return all;
}

std::span<const std::byte> ShardedState::parameters(std::size_t unit) {
  FlatUnit& one = state_->unit(unit);
  if (state_->options.stage == 3 && one.parameters.empty() && one.padded != 0) {
    state_->start_gathering(one);
  }
  state_->finish_gathering(one);
  return one.parameters.bytes().first(one.count * size_of(state_->options.dtype));
}

std::span<const float> ShardedState::parameters_f32(std::size_t unit) {
  const auto bytes = parameters(unit);
  if (state_->mixed()) {
    refuse("the parameters are bf16", "read them with parameters()");
  }
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

void ShardedState::prefetch(std::size_t unit) {
  FlatUnit& one = state_->unit(unit);
  if (state_->options.stage == 3 && one.parameters.empty() && one.padded != 0) {
    state_->start_gathering(one);
  }
}

void ShardedState::release(std::size_t unit) {
  FlatUnit& one = state_->unit(unit);
  if (state_->options.stage == 3) {
    state_->finish_gathering(one);
    one.parameters.free();
  }
}

std::span<std::byte> ShardedState::gradients(std::size_t unit) {
  FlatUnit& one = state_->unit(unit);
  if (one.is_ready) {
    refuse("the gradients of unit " + std::to_string(unit) + " are being reduced",
           "add to them before gradients_ready()");
  }
  if (one.gradients.empty()) {
    one.gradients.make(state_->options.dtype, one.padded);
  }
  return one.gradients.bytes().first(one.count * size_of(state_->options.dtype));
}

std::span<float> ShardedState::gradients_f32(std::size_t unit) {
  const auto bytes = gradients(unit);
  if (state_->mixed()) {
    refuse("the gradients are bf16", "write them with gradients()");
  }
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

void ShardedState::gradients_ready(std::size_t unit) {
  FlatUnit& one = state_->unit(unit);
  if (one.is_ready) {
    refuse("the gradients of unit " + std::to_string(unit) + " (" +
               (one.list.empty() ? "empty" : one.list.front().name) + ", ...) are ready twice",
           "call gradients_ready() once in each step");
  }
  gradients(unit);
  state_->start_reducing(one);
  one.is_ready = true;
  state_->reducing.push_back(unit);
  // With stages 2 and 3 the memory of whole gradients is to be free again soon.
  while (state_->options.stage >= 2 && state_->reducing.size() > kMostUnderWay) {
    state_->finish_first();
  }
}

void ShardedState::wait_gradients() {
  while (!state_->reducing.empty()) {
    state_->finish_first();
  }
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
    refuse(what, "call gradients_ready() for every unit before step()");
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

ShardedState::Bytes ShardedState::bytes_held() const {
  Bytes bytes;
  for (const FlatUnit& one : state_->units) {
    bytes.parameters += one.shard.size_bytes() + one.parameters.size_bytes();
    bytes.gradients += one.gradients.size_bytes() + one.reduced.size_bytes();
    bytes.optimizer += (one.master.size() + one.mean.size() + one.variance.size()) * sizeof(float);
  }
  return bytes;
}

double ShardedState::exposed_us() const {
  return state_->waits.us();
}

}  // namespace unisono::parallel
