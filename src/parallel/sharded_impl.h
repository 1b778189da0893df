// The implementation of ShardedState: its units, and the collectives on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "parallel/flat_unit.h"
#include "parallel/refuse.h"
#include "parallel/stopwatch.h"
#include "unisono/error.hpp"
#include "unisono/parallel/sharded_state.hpp"

namespace unisono::parallel {

struct ShardedState::State {
  Communicator& axis;
  ShardedOptions options;
  std::vector<FlatUnit> units = {};
  std::deque<std::size_t> reducing = {};  // units whose reductions are in progress, in order
  Stopwatch waits = {};
  std::int64_t steps = 0;

  bool mixed() const { return options.dtype != Dtype::f32; }
  std::size_t ranks() const { return static_cast<std::size_t>(axis.size()); }
  std::size_t rank() const { return static_cast<std::size_t>(axis.rank()); }
  FlatUnit& unit(std::size_t index) {
    if (index >= units.size()) {
      refuse("sharded state",
             "there is no unit " + std::to_string(index) + " of " + std::to_string(units.size()),
             "units are numbered from 0");
    }
    return units[index];
  }
  // Returns the index of the first element that this rank updates.
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
  std::size_t replica() const {
    return options.replicas == nullptr ? 0 : static_cast<std::size_t>(options.replicas->rank());
  }
  std::size_t replicas() const {
    return options.replicas == nullptr ? 1 : static_cast<std::size_t>(options.replicas->size());
  }
  void check_leaves(const std::vector<Leaves>& leaves) const;
  TreeSum& tree(FlatUnit& one) const;
  void start_reducing(FlatUnit& one);
  void start_tree(FlatUnit& one);
  void finish_reducing(FlatUnit& one);
  void finish_tree(FlatUnit& one);
  void finish_first() {
    finish_reducing(units[reducing.front()]);
    reducing.pop_front();
  }
  // Returns this rank's part of the reduced gradients.
  Elements& sums(FlatUnit& one) const { return options.stage >= 2 ? one.reduced : one.gradients; }
  std::size_t sums_from(const FlatUnit& one) const { return options.stage >= 2 ? 0 : first(one); }
  double norm();
  void update(FlatUnit& one, double scale);
};

}  // namespace unisono::parallel
