// A rank's helper threads (ConnectOptions::threads). They run parts of a blocking call for its
// caller, and sleep otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace unisono::comm {

class HelperThreads {
 public:
  // With `spins`, an idle thread polls for work for a short time before it sleeps. Throws resource
  // if the threads cannot be started.
  HelperThreads(int helpers, bool spins);
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;
  ~HelperThreads();  // joins them

  int helpers() const noexcept { return static_cast<int>(threads_.size()); }

  // Calls body(0) to body(parts - 1) once each: body(0) in this thread, the others in parts - 1
  // helpers, which must exist. Returns when all calls have returned; `body` must not throw. If
  // another thread uses the helpers, this thread makes all calls in order. Any thread may call.
  template <typename Body>
  void run(int parts, const Body& body) noexcept {
    run_parts(
        parts, [](const void* what, int part) { (*static_cast<const Body*>(what))(part); }, &body);
  }

 private:
  using Invoke = void (*)(const void* body, int part);
  // One cache line for each helper.
  struct alignas(64) Post {
    std::atomic<std::uint32_t> given{0};  // parts given to the helper so far
    std::atomic<std::uint32_t> done{0};   // parts that it has completed
  };

  void run_parts(int parts, Invoke invoke, const void* body) noexcept;
  void serve(int helper) noexcept;
  // Waits until `word` differs from `old`.
  void await(const std::atomic<std::uint32_t>& word, std::uint32_t old) const noexcept;
  void stop() noexcept;

  int looks_;  // polls before a thread sleeps
  std::atomic<bool> taken_{false};
  // Written by the thread that has taken the helpers, before it hands out parts.
  Invoke invoke_ = nullptr;
  const void* body_ = nullptr;
  bool stopping_ = false;
  std::unique_ptr<Post[]> posts_;
  std::vector<std::thread> threads_;
};

}  // namespace unisono::comm
