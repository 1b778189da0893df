// Short time slices for threads that wait while others compute on their cores. Linux 6.12 and newer
// run who asks for short slices sooner when it wakes, and for no more of the time: its share of the
// core stays what it was. Where the kernel does not know slices, nothing changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace unisono::comm {

// Sets that of a thread of this process, in nanoseconds. Returns the one before, or 0 where it was
// not changed: an older kernel, another scheduling class than the usual one, a thread that has
// ended.
std::uint64_t change_time_slice(int thread, std::uint64_t ns) noexcept;

// The threads that have short ones, until they are given back what they had. Any threads may use
// it.
class ShortSlices {
 public:
  using Change = std::uint64_t (*)(int thread, std::uint64_t ns) noexcept;
  // The shortest that Linux gives.
  static constexpr std::uint64_t kNs = 100'000;

  explicit ShortSlices(Change change) noexcept : change_(change) {}
  ShortSlices(const ShortSlices&) = delete;
  ShortSlices& operator=(const ShortSlices&) = delete;
  ~ShortSlices() { give_back(); }

  // For this thread. More threads than there is room for keep theirs.
  void take(int thread) noexcept;
  // For all.
  void give_back() noexcept;

 private:
  struct Taken {
    int thread = 0;
    std::uint64_t before = 0;  // 0: it could not be changed
  };

  Change change_;
  std::mutex taking_;  // guards what follows
  std::array<Taken, 16> taken_;
  std::size_t count_ = 0;
};

}  // namespace unisono::comm
