// A long blocking collective in slices, one for each thread of the rank: the caller makes the first
// of them in its group, and each of the library's helper threads one in a group of its own with the
// same ranks.
//
// The ranks must cut alike, so whether a call is cut follows from nothing but what all of them give
// alike, and from the profile, which must be the same too. And a result must not tell how it was
// cut: sums are cut only where they are taken in the order of the ranks.
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
  // `helpers`: in a group of its own for each of `threads`, with this group's ranks in its order.
  Helpers(Surroundings& world, HelperThreads& threads, std::vector<Make> helpers, int rank,
          int ranks);

  // Into how many slices a call may be cut, by its length and kind; 1: it is not cut.
  int slices_of(const Call& call) const noexcept;
  // Whether the result is the same then, by the algorithm that was chosen for the whole.
  static bool may_cut(const Call& call, const Prepared& whole) noexcept;
  // `first` makes the first slice. Throws what ended the call, which then ended the world too.
  // False: another thread is in such a call.
  bool run(const Call& call, const Prepared& whole, int slices, const Make& first);

 private:
  struct Part {
    explicit Part(int ranks) : lists(ranks) {}
    Parts lists;
    Call call;
    std::exception_ptr error;
  };
  // The call with a copy of its input, where slices would read what others write.
  Call set_aside(const Call& call);

  Surroundings& world_;
  HelperThreads& threads_;
  std::vector<Make> helpers_;
  int rank_;
  std::vector<Part> parts_;
  std::vector<std::byte> aside_;
  std::atomic<bool> used_{false};
};

}  // namespace unisono::comm
