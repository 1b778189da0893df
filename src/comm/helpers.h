// Cuts a long blocking collective into slices, one per thread of the rank. The caller makes the
// first slice in its own group. Each helper thread makes one slice in a separate group of the same
// ranks.
//
// All ranks must cut in the same way. Therefore the decision depends only on arguments that are
// equal on all ranks, and on the profile, which must be equal as well. The result must not depend
// on the cut, so a sum is cut only if it is taken in rank order.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <vector>

#include "comm/helper_threads.h"
#include "comm/slices.h"
#include "comm/waiter.h"
#include "unisono/call.hpp"

namespace unisono::comm {

struct Prepared;

class Helpers {
 public:
  // Makes a call. Throws the error that ends it.
  using Make = std::function<void(const Call& slice)>;
  // `helpers` has one function for each of `threads`. Each function uses a group of its own, with
  // this group's ranks in the same order.
  Helpers(WaitEnvironment& world, HelperThreads& threads, std::vector<Make> helpers, int rank,
          int ranks);

  // Returns the number of slices for a call of this kind and length; 1: do not cut.
  int slices_of(const Call& call) const noexcept;
  // Returns true if cutting does not change the result of the algorithm chosen for the whole call.
  static bool may_cut(const Call& call, const Prepared& whole) noexcept;
  // Makes the call in slices; `first` makes the first one. Throws the error that ended the call;
  // such an error has also ended the world. Returns false if another thread is already in such a
  // call.
  bool run(const Call& call, const Prepared& whole, int slices, const Make& first);

 private:
  struct Part {
    explicit Part(int ranks) : lists(ranks) {}
    Parts lists;
    Call call;
    std::exception_ptr error;
  };
  // Returns the call with a copy of its input. Needed if a slice would otherwise read memory that
  // another slice writes.
  Call set_aside(const Call& call);

  WaitEnvironment& world_;
  HelperThreads& threads_;
  std::vector<Make> helpers_;
  int rank_;
  std::vector<Part> parts_;
  std::vector<std::byte> aside_;
  std::atomic<bool> used_{false};
};

}  // namespace unisono::comm
