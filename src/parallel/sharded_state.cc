// ZeRO on flat units: decides which rank holds which data, and when it is gathered.
#include "unisono/parallel/sharded_state.hpp"

#include <algorithm>
#include <utility>

#include "parallel/sharded_impl.h"

namespace unisono::parallel {
namespace {

constexpr std::size_t kMostUnderWay = 2;

}  // namespace

ShardedState::ShardedState(Communicator& axis, std::vector<std::vector<Parameter>> units,
                           const ShardedOptions& options)
    : state_(new State{.axis = axis, .options = options}) {
  if (options.stage < 0 || options.stage > 3) {
    refuse("sharded state", "there is no stage " + std::to_string(options.stage),
           "stages are 0, 1, 2 and 3");
  }
  if (options.dtype != Dtype::f32 && options.dtype != Dtype::bf16 && options.dtype != Dtype::f16) {
    refuse("sharded state", "parameters of " + std::string(to_string(options.dtype)),
           "use f32, bf16 or f16");
  }
  if (options.op != ReduceOp::avg && options.op != ReduceOp::sum) {
    refuse("sharded state", "gradients cannot be combined by " + std::string(to_string(options.op)),
           "use avg or sum");
  }
  state_->check_leaves(options.leaves);
  const std::size_t n = state_->ranks();
  for (std::vector<Parameter>& list : units) {
    FlatUnit one;
    for (const Parameter& parameter : list) {
      one.count += parameter.count;
    }
    one.list = std::move(list);
    one.leaves = options.leaves;
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
    refuse("sharded state",
           std::to_string(values.size()) + " values for unit " + std::to_string(unit) + " of " +
               std::to_string(one.count) + " elements",
           "give all parameters of the unit, one after the other");
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
    refuse("sharded state", "the parameters are " + std::string(to_string(state_->options.dtype)),
           "read them with parameters()");
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
    refuse("sharded state", "the gradients of unit " + std::to_string(unit) + " are being reduced",
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
    refuse("sharded state", "the gradients are " + std::string(to_string(state_->options.dtype)),
           "write them with gradients()");
  }
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

void ShardedState::leaf_ready(std::size_t unit, std::size_t leaf) {
  leaf_ready(unit, {.first = leaf, .count = 1});
}

void ShardedState::leaf_ready(std::size_t unit, const Leaves& node) {
  const std::span<std::byte> values = gradients(unit);
  FlatUnit& one = state_->unit(unit);
  if (one.leaves.empty()) {
    refuse("sharded state", "unit " + std::to_string(unit) + " has no leaves",
           "list the leaves of each rank in ShardedOptions::leaves");
  }
  const ReadFloats floats(ConstAnySpan(one.gradients.at(0), one.padded, state_->options.dtype));
  state_->tree(one).add(node, floats.span().data());
  std::ranges::fill(values, std::byte{});
}

void ShardedState::set_leaves(std::size_t unit, std::vector<Leaves> leaves) {
  FlatUnit& one = state_->unit(unit);
  state_->check_leaves(leaves);
  if (one.tree || one.is_ready) {
    refuse("sharded state", "the leaves of unit " + std::to_string(unit) + " are being summed",
           "call set_leaves() before the first leaf of a step");
  }
  one.leaves = std::move(leaves);
}

void ShardedState::gradients_ready(std::size_t unit) {
  FlatUnit& one = state_->unit(unit);
  if (one.is_ready) {
    refuse("sharded state",
           "the gradients of unit " + std::to_string(unit) + " (" +
               (one.list.empty() ? "empty" : one.list.front().name) + ", ...) are ready twice",
           "call gradients_ready() once in each step");
  }
  gradients(unit);
  state_->start_reducing(one);
  one.is_ready = true;
  state_->reducing.push_back(unit);
  // In stages 2 and 3 the memory of whole gradients must be freed soon.
  while (state_->options.stage >= 2 && state_->reducing.size() > kMostUnderWay) {
    state_->finish_first();
  }
}

void ShardedState::wait_gradients() {
  while (!state_->reducing.empty()) {
    state_->finish_first();
  }
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
