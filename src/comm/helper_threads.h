// The library's own threads of a rank (ConnectOptions::threads): they make parts of what the caller
// of a blocking call makes, and sleep otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace unisono::comm {

class HelperThreads {
 public:
  // `spins`: a thread that has nothing to do looks for work a little before it sleeps. Throws
  // resource if there can be no such threads.
  HelperThreads(int helpers, bool spins);
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;
  ~HelperThreads();  // joins them

  int helpers() const noexcept { return static_cast<int>(threads_.size()); }

  // body(0) to body(parts - 1), each once: 0 in this thread and the others in helpers, of which
  // there must be parts - 1. Returns when all have returned; `body` must not throw. While another
  // thread has the helpers, this one makes all parts, in their order. Any thread.
  template <typename Body>
  void run(int parts, const Body& body) noexcept {
    run_parts(
        parts, [](const void* what, int part) { (*static_cast<const Body*>(what))(part); }, &body);
  }

 private:
  using Invoke = void (*)(const void* body, int part);
  // One line for each helper.
  struct alignas(64) Post {
    std::atomic<std::uint32_t> given{0};  // parts that it was given so far
    std::atomic<std::uint32_t> done{0};   // and has made
  };

  void run_parts(int parts, Invoke invoke, const void* body) noexcept;
  void serve(int helper) noexcept;
  // Until `word` is no longer `old`.
  void await(const std::atomic<std::uint32_t>& word, std::uint32_t old) const noexcept;
  void stop() noexcept;

  int looks_;  // before a thread sleeps
  std::atomic<bool> taken_{false};
  // Written by the thread that has taken the helpers, before it gives out parts.
  Invoke invoke_ = nullptr;
  const void* body_ = nullptr;
  bool stopping_ = false;
  std::unique_ptr<Post[]> posts_;
  std::vector<std::thread> threads_;
};

}  // namespace unisono::comm
