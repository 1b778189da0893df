// Whether a plain store reaches the readers of a lane through a cache that the cores share.
//
// A line that the reader has in its cache must be taken away from there before it can be written.
// Within one shared cache that runs at 30 GB/s, between two at 2.4 GB/s; there, stores past the
// caches are better (28 GB/s, but the reader then fetches from memory). Measured on an EPYC 9004. A
// lane into which only reductions write is never looked at, and stays far.
// What the machine says of its caches is not to be trusted in a virtual machine, and ranks may
// move; so the writer looks now and then how fast a plain copy goes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace unisono::shm {

class Distance {
 public:
  // Copies below this are plain ones, and say nothing.
  static constexpr std::size_t kLeastBytes = 4096;
  // How much of a copy is timed.
  static constexpr std::size_t kLookBytes = 16384;

  bool far() const noexcept { return far_; }
  // Counts one copy. True: it should be a plain one, and timed.
  bool is_look_due() noexcept { return --until_look_ == 0; }
  // For messages that go without a copy: they count as well, but the look needs a copy.
  bool is_next_look() const noexcept { return until_look_ == 1; }
  void count() noexcept { until_look_ -= until_look_ > 1 ? 1 : 0; }
  void learn(std::size_t bytes, std::chrono::nanoseconds time) noexcept {
    const bool slow =
        static_cast<double>(bytes) < kFarBytesPerNs * static_cast<double>(time.count());
    // One slow copy may have been interrupted.
    far_ = slow && (far_ || slow_before_);
    slow_before_ = slow;
    until_look_ = far_ ? kFarLook : slow ? 1 : kNearLook;
  }

 private:
  static constexpr double kFarBytesPerNs = 6;
  // A look at a far reader costs about 6 us.
  static constexpr std::uint32_t kFarLook = 64;
  static constexpr std::uint32_t kNearLook = 16;
  // A lane begins as a far one. While its slots are fresh, looks find page faults and say the same.
  std::uint32_t until_look_ = kFarLook;
  bool far_ = true;
  bool slow_before_ = true;
};

}  // namespace unisono::shm
