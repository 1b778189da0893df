// Groups derived from a group: split, merged, or without some of its ranks.
#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "backend.h"

namespace unisono_torch {

std::vector<int> Backend::in_job(const std::vector<int>& ranks) const {
  const auto& global = options_->global_ranks_in_group;
  std::vector<int> members;
  for (const int rank : ranks) {
    members.push_back(global.empty() ? rank : static_cast<int>(global.at(rank)));
  }
  return members;
}

// PyTorch calls this once per device type with the same store, but wants one group.
Pointer<c10d::Backend> Backend::made_once(const Pointer<c10d::Store>& store,
                                          const Meeting& meeting) {
  const std::lock_guard lock(making_);
  if (auto made = made_.lock(); made != nullptr && made_with_.lock() == store) {
    return made;
  }
  const Pointer<c10d::Backend> made = c10::make_intrusive<Backend>(store, meeting, shown_as_);
  made_ = c10::weak_intrusive_ptr<c10d::Backend>(made);
  made_with_ = c10::weak_intrusive_ptr<c10d::Store>(store);
  return made;
}

Pointer<c10d::Backend> Backend::split(const Pointer<c10d::Store>& store,
                                      const std::vector<int>& ranks,
                                      const Pointer<c10d::Backend::Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), getRank());
  if (found == ranks.end()) {
    return nullptr;
  }
  return made_once(store, {.rank = static_cast<int>(found - ranks.begin()),
                           .size = static_cast<int>(ranks.size()),
                           .timeout = limit_of(options),
                           .members = in_job(ranks)});
}

Pointer<c10d::Backend> Backend::merge(const Pointer<c10d::Store>& store,
                                      const Pointer<c10d::Backend::Options>& options,
                                      const int& rank, const int& size) {
  return made_once(store, {.rank = rank, .size = size, .timeout = limit_of(options)});
}

Pointer<c10d::Backend> Backend::shrink(const std::vector<int64_t>& left_out, int flags,
                                       const Pointer<c10d::Backend::Options>& options) {
  constexpr int kAbort = 1;  // torch.distributed.SHRINK_ABORT
  std::vector<int> left;
  for (int rank = 0; rank < getSize(); ++rank) {
    if (std::find(left_out.begin(), left_out.end(), rank) == left_out.end()) {
      left.push_back(rank);
    }
  }
  const auto found = std::find(left.begin(), left.end(), getRank());
  TORCH_CHECK_VALUE(
      found != left.end(), "unisono: rank ", getRank(),
      " excludes itself from the group that it shrinks; call it only on the remaining ranks");
  if ((flags & kAbort) != 0) {
    abort();
  }
  // Ranks that exclude different ranks do not meet, and each shrink is a separate rendezvous.
  const std::string name =
      c10::str("unisono/shrink/", shrinks_++, "/without/", c10::Join(",", left_out), "/");
  return c10::make_intrusive<Backend>(c10::make_intrusive<c10d::PrefixStore>(name, store_),
                                      Meeting{.rank = static_cast<int>(found - left.begin()),
                                              .size = static_cast<int>(left.size()),
                                              .timeout = limit_of(options),
                                              .members = in_job(left),
                                              .apart = true},
                                      shown_as_);
}

}  // namespace unisono_torch
