#include "select/recent_plans.h"

#include <utility>

namespace unisono::comm {
namespace {

constexpr std::size_t kMostEntries = 256;

}  // namespace

const RecentPlans::Entry* RecentPlans::find(const PlanKey& key) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i]->key == key) {
      std::swap(entries_[i], entries_[i / 2]);
      return entries_[i / 2].get();
    }
  }
  return nullptr;
}

const RecentPlans::Entry& RecentPlans::add(const PlanKey& key, Plan plan) {
  auto entry = std::make_unique<Entry>(
      Entry{.key = key, .algorithm = std::string(key.algorithm), .plan = std::move(plan)});
  entry->key.algorithm = entry->algorithm;
  if (entries_.size() < kMostEntries) {
    entries_.push_back(std::move(entry));
    return *entries_.back();
  }
  latest_ = {};
  // Evicts from the less used half, so that neither a loop over many sizes nor a change of sizes
  // misses every time.
  constexpr std::size_t kHalf = kMostEntries / 2;
  evicted_ = (evicted_ + 97) % kHalf;
  entries_[kHalf + evicted_] = std::move(entry);
  return *entries_[kHalf + evicted_];
}

const RecentPlans::Plan& RecentPlans::set_latest(const Call& call, const Entry& entry) {
  latest_ = {.collective = call.collective,
             .dtype = call.dtype,
             .op = call.reduction.op,
             .root = call.root,
             .in = call.in,
             .out = call.out,
             .count = call.count,
             .factor = call.reduction.factor,
             .max_error = call.max_error,
             .algorithm = entry.key.algorithm};
  if (call.reduction.op == ReduceOp::user) {
    latest_.count = ~call.count;  // no such call equals this entry: its function may differ
  }
  latest_plan_ = &entry.plan;
  return entry.plan;
}

}  // namespace unisono::comm
