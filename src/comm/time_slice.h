// Short time slices for threads that wait while others compute on their cores. When such a thread
// wakes, Linux 6.12 and newer runs it sooner, without giving it a larger share of the core. Older
// kernels ignore the setting.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace unisono::comm {

// Sets the time slice, in nanoseconds, of a thread of this process. Returns the previous slice.
// Returns 0 if the slice was not changed: the kernel is older, the scheduling class is unusual, or
// the thread has ended.
std::uint64_t change_time_slice(int thread, std::uint64_t ns) noexcept;

// The threads that have short slices until give_back(). Any thread may use it.
class ShortSlices {
 public:
  using Change = std::uint64_t (*)(int thread, std::uint64_t ns) noexcept;
  // The shortest slice that Linux grants.
  static constexpr std::uint64_t kNs = 100'000;

  explicit ShortSlices(Change change) noexcept : change_(change) {}
  ShortSlices(const ShortSlices&) = delete;
  ShortSlices& operator=(const ShortSlices&) = delete;
  ~ShortSlices() { give_back(); }

  // Shortens the calling thread's slices. If the table is full, the thread keeps its usual slices.
  void take(int thread) noexcept;
  // Restores the slices of all threads.
  void give_back() noexcept;

 private:
  struct Taken {
    int thread = 0;
    std::uint64_t before = 0;  // 0: it could not be changed
  };

  Change change_;
  std::mutex taking_;  // guards the members below
  std::array<Taken, 16> taken_;
  std::size_t count_ = 0;
};

}  // namespace unisono::comm
