// A cache of plans for repeated calls.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/call.hpp"

namespace unisono::comm {

struct Prepared;

// The properties that two calls must share to have the same plan.
struct PlanKey {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::u8;
  ReduceOp op = ReduceOp::sum;
  bool in_place = false;
  int root = 0;
  std::size_t count = 0;
  double factor = 1.0;
  double max_error = 0;
  void (*user)(void*, const void*, std::size_t, void*) = nullptr;
  void* user_context = nullptr;
  std::string_view algorithm = {};
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

class RecentPlans {
 public:
  using Plan = std::shared_ptr<const Prepared>;
  struct Entry {
    PlanKey key;
    std::string algorithm;  // owns the text of key.algorithm
    Plan plan;              // shared with the operations that run it
  };

  // Returns the plan of the latest call if this call equals it, buffers included, so that nothing
  // needs to be checked. Otherwise returns nullptr.
  const Plan* latest(const Call& call) const noexcept {
    return call == latest_ ? latest_plan_ : nullptr;
  }
  // Returns nullptr if the plan is not cached. The result is valid until the next add().
  const Entry* find(const PlanKey& key);
  const Entry& add(const PlanKey& key, Plan plan);
  // REQUIRES: the call has been checked and has this plan.
  const Plan& set_latest(const Call& call, const Entry& entry);

 private:
  // The latest call; never a v-form or a user-defined operation.
  struct Latest {
    Collective collective = Collective::barrier;
    Dtype dtype = Dtype::u8;
    ReduceOp op = ReduceOp::user;
    int root = -1;
    const void* in = nullptr;
    const void* out = nullptr;
    std::size_t count = 0;
    double factor = 0;
    double max_error = 0;
    std::string_view algorithm = {};
    friend bool operator==(const Call& call, const Latest& latest) {
      return call.in == latest.in && call.out == latest.out && call.count == latest.count &&
             call.collective == latest.collective && call.dtype == latest.dtype &&
             call.reduction.op == latest.op && call.root == latest.root &&
             call.reduction.factor == latest.factor && call.max_error == latest.max_error &&
             call.algorithm.size() == latest.algorithm.size() && call.algorithm == latest.algorithm;
    }
  };

  std::vector<std::unique_ptr<Entry>> entries_;  // the more frequently used half is in front
  std::size_t evicted_ = 0;                      // index of the last eviction, in the second half
  Latest latest_;
  const Plan* latest_plan_ = nullptr;
};

}  // namespace unisono::comm
