// Detects whether a plain store reaches the readers of a lane through a cache that the cores share.
//
// A line in the reader's cache must be taken away from there before it can be written. Within one
// shared cache this runs at 30 GB/s, between two caches at 2.4 GB/s; there, non-temporal stores are
// better (28 GB/s, but the reader then reads from memory). Measured on an EPYC 9004. A lane that
// only reductions write to is never measured, and stays far.
// A virtual machine may report wrong caches, and ranks may migrate, so the writer occasionally
// measures the speed of a plain copy.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace unisono::shm {

class Distance {
 public:
  // Shorter copies are always plain, and are not measured.
  static constexpr std::size_t kLeastBytes = 4096;
  // The part of a copy that is timed.
  static constexpr std::size_t kLookBytes = 16384;

  bool far() const noexcept { return far_; }
  // Counts one copy. Returns true if it should be plain and timed.
  bool is_look_due() noexcept { return --until_look_ == 0; }
  // For messages that are sent without a copy: they count as well, but the measurement needs a
  // copy.
  bool is_next_look() const noexcept { return until_look_ == 1; }
  void count() noexcept { until_look_ -= until_look_ > 1 ? 1 : 0; }
  void learn(std::size_t bytes, std::chrono::nanoseconds time) noexcept {
    const bool slow =
        static_cast<double>(bytes) < kFarBytesPerNs * static_cast<double>(time.count());
    // A single slow copy may have been interrupted.
    far_ = slow && (far_ || slow_before_);
    slow_before_ = slow;
    until_look_ = far_ ? kFarLook : slow ? 1 : kNearLook;
  }

 private:
  static constexpr double kFarBytesPerNs = 6;
  // A measurement with a far reader costs about 6 us.
  static constexpr std::uint32_t kFarLook = 64;
  static constexpr std::uint32_t kNearLook = 16;
  // A lane begins as far. While its slots are new, measurements see page faults and conclude the
  // same.
  std::uint32_t until_look_ = kFarLook;
  bool far_ = true;
  bool slow_before_ = true;
};

}  // namespace unisono::shm
