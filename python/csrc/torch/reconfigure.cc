// torch.distributed's reconfigure: a group continues with the ranks whose handles it receives.
#include <algorithm>
#include <set>

#include "backend.h"
#include "common/without_python.h"

#ifdef C10D_BACKEND_HAS_RECONFIGURE

namespace unisono_torch {
namespace {

// Returns handles in the order of the new ranks. In a set, ranks that were in a group keep their
// order.
std::vector<std::string> ordered(const c10d::ReconfigureOptions& options) {
  std::vector<std::string> handles;
  std::visit([&](const auto& given) { handles.assign(given.begin(), given.end()); },
             options.handles);
  for (const std::string& text : handles) {
    static_cast<void>(read_handle(text));
  }
  if (std::holds_alternative<std::unordered_set<std::string>>(options.handles)) {
    std::sort(handles.begin(), handles.end(), [](const std::string& a, const std::string& b) {
      return std::pair(read_handle(a).rank, a) < std::pair(read_handle(b).rank, b);
    });
  }
  TORCH_CHECK_VALUE(std::set(handles.begin(), handles.end()).size() == handles.size(),
                    "unisono:reconfigure: a handle is given twice; give one for each rank");
  return handles;
}

}  // namespace

const Handle& Backend::handle() const {
  std::call_once(handle_made_, [this] {
    handle_ = new_handle(*store_);
    handle_.rank = getRank();
  });
  return handle_;
}

c10d::ReconfigureHandle Backend::get_reconfigure_handle() const {
  return write_handle(handle());
}

// Returns when all members have joined, so the Work is complete.
WorkPointer Backend::reconfigure(const c10d::ReconfigureOptions& options) {
  const unisono_signals::WithoutPython unlocked;
  const std::vector<std::string> handles = ordered(options);
  const auto own = std::find(handles.begin(), handles.end(), write_handle(handle()));
  TORCH_CHECK_VALUE(own != handles.end(), "unisono:reconfigure: the handle of this rank is not ",
                    "among the ", handles.size(), " given; handles work for one reconfigure, ",
                    "so exchange new ones each time, and call it only on the named ranks");
  TORCH_CHECK_VALUE(numbers_.insert(options.uuid).second, "unisono:reconfigure: uuid ",
                    options.uuid, " has been used; give a new one each time");
  const auto limit = options.timeout.value_or(std::chrono::milliseconds(timeout_ms_.load()));
  // Ends pending operations, which may wait for ranks that have ended.
  if (open_ && place_.world != nullptr && !wait_for_all(std::chrono::milliseconds(0))) {
    place_.group().abort("the process group is reconfigured");
  }
  leave(std::min(limit, kFarewell));
  take_device().reset();
  place_ = {};
  const int rank = static_cast<int>(own - handles.begin());
  place_ = meet_by_handles(store_, handles, rank, options.uuid, limit);
  rank_ = rank;
  size_ = static_cast<int>(handles.size());
  handle_.rank = rank;
  handle_.made_with = options.uuid;
  options_->global_ranks_in_group.clear();
  sequence_ = 0;
  shrinks_ = 0;
  {
    const std::lock_guard lock(issuing_);
    device_.reset();
    record_.reset();
    record_made_ = std::make_unique<std::once_flag>();
  }
  pending_operations_->renew(place_.world->has_failed);
  open_ = true;
  auto work =
      c10::make_intrusive<Operation>(Operation::Description{.rank = rank}, pending_operations_);
  work->complete_now();
  return work;
}

}  // namespace unisono_torch

#endif
