// Detects whether the writer and the readers of a lane share a cache, so that plain stores are
// fast.
//
// Before a core can write a line that is in the reader's cache, the line must leave that cache.
// Within one shared cache this runs at 30 GB/s. Between two caches it runs at 2.4 GB/s, and
// non-temporal stores are better: they run at 28 GB/s, but the reader then reads from memory
// (measured on an EPYC 9004). A virtual machine may report wrong caches, and ranks may migrate.
// Therefore the writer does not ask the system, but occasionally times a plain copy. A lane that
// only reductions write to is never measured, and counts as far.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace unisono::shm {

class Distance {
 public:
  // Shorter copies are always plain, and are not measured.
  static constexpr std::size_t kLeastBytes = 4096;
  // Number of bytes of a copy that are timed.
  static constexpr std::size_t kLookBytes = 16384;

  bool far() const noexcept { return far_; }
  // Counts one copy. Returns true if it should be plain and timed.
  bool is_look_due() noexcept { return --until_look_ == 0; }
  // Returns true if the next copy is the one to time. A message that is sent without a copy counts
  // as well, but cannot be timed.
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
  // A lane begins as far. Timing copies to new slots would give the same result, because it would
  // include the page faults.
  std::uint32_t until_look_ = kFarLook;
  bool far_ = true;
  bool slow_before_ = true;
};

}  // namespace unisono::shm
