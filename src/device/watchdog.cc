#include "device/watchdog.h"

#include <chrono>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "device/context.h"
#include "unisono/communicator.hpp"

namespace unisono::device {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(5);
constexpr unsigned kPortableMapped = 3;      // CU_MEMHOSTALLOC_...
constexpr std::size_t kBeforeStatus = 4096;  // the stop word has a separate page

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

HostWords::HostWords(const Context& context, std::uint32_t channels) : context_(context) {
  const InContext here(context);
  const std::size_t bytes = kBeforeStatus + channels * sizeof(Status);
  void* memory = nullptr;
  check_cuda(cuda_driver().cuMemHostAlloc(&memory, bytes, kPortableMapped), "cuMemHostAlloc");
  std::memset(memory, 0, bytes);
  stop_ = static_cast<std::uint32_t*>(memory);
  status_ = reinterpret_cast<Status*>(static_cast<char*>(memory) + kBeforeStatus);
}

HostWords::~HostWords() {
  quietly_in(context_.handle(), [this] { cuda_driver().cuMemFreeHost(stop_); });
}

Watchdog::Watchdog(Communicator& comm, const HostWords& words, std::uint32_t channels, int limit_ms)
    : comm_(comm), words_(words), channels_(channels), limit_ms_(limit_ms) {
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource,
                std::string("cannot start the thread that watches a device group: ") +
                    error.what() + "\nraise the limit on threads (ulimit -u)");
  }
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<Error> Watchdog::ended() const {
  const std::lock_guard lock(mutex_);
  // Kernels that detect a different call end on their own, perhaps before the next check.
  return ended_ ? ended_ : mismatch();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_ && !changed_.wait_for(lock, kBetweenLooks, [this] { return closing_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

void Watchdog::look() {
  if (const std::optional<Error> failure = comm_.failure()) {
    end(*failure);
    return;
  }
  std::optional<Error> found = mismatch();
  found = found ? found : lateness();
  if (found) {
    comm_.abort(found->message());
    end(*found);
  }
}

std::optional<Error> Watchdog::mismatch() const {
  for (std::uint32_t c = 0; c < channels_; ++c) {
    const std::uint32_t other = std::atomic_ref(words_.status()[c].mismatch).load();
    if (other != 0) {
      return Error(ErrorCode::mismatch,
                   "device group: rank " + std::to_string(other - 1) +
                       " makes another call than rank " + std::to_string(comm_.rank()) +
                       "\nmake the same calls in the same order with the same counts on all ranks; "
                       "use the same in-place form and the same kind of memory (allocate(), or "
                       "cudaMalloc for threads with several devices)",
                   {.rank = comm_.rank(), .peer = static_cast<int>(other) - 1});
    }
  }
  return std::nullopt;
}

std::optional<Error> Watchdog::lateness() {
  std::uint32_t late = 0;
  for (std::uint32_t c = 0; c < channels_ && late == 0; ++c) {
    late = std::atomic_ref(words_.status()[c].late).load();
  }
  const std::int64_t now = now_ms();
  if (!is_same_wait(late, std::exchange(late_, late))) {
    late_since_ = now;
    return std::nullopt;
  }
  const int limit_ms = limit_ms_;
  if (limit_ms == 0 || now - late_since_ <= limit_ms) {
    return std::nullopt;
  }
  const auto peer = static_cast<int>(late_rank(late));
  return Error(
      ErrorCode::timeout,
      "device group: rank " + std::to_string(peer) + " has not arrived for " +
          std::to_string(limit_ms) +
          " ms\ncheck what it does; DeviceOptions::timeout_ms or set_timeout() sets the limit",
      {.rank = comm_.rank(), .peer = peer});
}

void Watchdog::end(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (!ended_) {
    ended_ = why;
  }
  std::atomic_ref(*words_.stop()).store(1);
}

}  // namespace unisono::device
