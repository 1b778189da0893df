// Cuts a long blocking collective into slices, one for each thread of the rank. The caller makes
// the first slice in its own group; each helper thread makes one in a separate group of the same
// ranks.
//
// All ranks must cut alike, so the decision depends only on arguments that are the same on all
// ranks, and on the profile, which must be the same too. The result must not depend on the cut:
// sums are cut only if they are taken in rank order.
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
  // Makes a call and throws what ends it.
  using Make = std::function<void(const Call& slice)>;
  // `helpers`: one for each of `threads`, each in a group of its own with this group's ranks in the
  // same order.
  Helpers(WaitEnvironment& world, HelperThreads& threads, std::vector<Make> helpers, int rank,
          int ranks);

  // Returns the number of slices for a call of this kind and length; 1: do not cut.
  int slices_of(const Call& call) const noexcept;
  // Returns true if cutting does not change the result of the algorithm chosen for the whole call.
  static bool may_cut(const Call& call, const Prepared& whole) noexcept;
  // `first` makes the first slice. Throws the error that ended the call; such an error has also
  // ended the world. Returns false if another thread is in such a call.
  bool run(const Call& call, const Prepared& whole, int slices, const Make& first);

 private:
  struct Part {
    explicit Part(int ranks) : lists(ranks) {}
    Parts lists;
    Call call;
    std::exception_ptr error;
  };
  // Returns the call with a copy of its input, for slices that would otherwise read what others
  // write.
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
