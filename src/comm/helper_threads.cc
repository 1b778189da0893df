#include "comm/helper_threads.h"

#include <string>
#include <system_error>

#include "base/relax.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr int kLooks = 2000;  // about the cost of a wake-up

std::size_t index(int helper) {
  return static_cast<std::size_t>(helper);
}

}  // namespace

HelperThreads::HelperThreads(int helpers, bool spins)
    : looks_(spins ? kLooks : 0), posts_(std::make_unique<Post[]>(index(helpers))) {
  threads_.reserve(index(helpers));
  try {
    for (int helper = 0; helper < helpers; ++helper) {
      threads_.emplace_back([this, helper] { serve(helper); });
    }
  } catch (const std::system_error& error) {
    stop();
    throw Error(ErrorCode::resource,
                "cannot start a rank's helper threads, of which UNISONO_THREADS requests " +
                    std::to_string(helpers) + ": " + error.what() +
                    "\nask for fewer, or raise the limits on threads and memory (ulimit -u, ulimit "
                    "-v)");
  }
}

HelperThreads::~HelperThreads() {
  stop();
}

void HelperThreads::stop() noexcept {
  stopping_ = true;
  for (int helper = 0; helper < helpers(); ++helper) {
    Post& post = posts_[index(helper)];
    post.given.fetch_add(1, std::memory_order_release);
    post.given.notify_one();
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void HelperThreads::await(const std::atomic<std::uint32_t>& word,
                          std::uint32_t old) const noexcept {
  for (int look = 0; look < looks_; ++look) {
    if (word.load(std::memory_order_acquire) != old) {
      return;
    }
    relax();
  }
  while (word.load(std::memory_order_acquire) == old) {
    word.wait(old, std::memory_order_acquire);
  }
}

void HelperThreads::run_parts(int parts, Invoke invoke, const void* body) noexcept {
  if (parts < 2 || taken_.exchange(true, std::memory_order_acquire)) {
    for (int part = 0; part < parts; ++part) {
      invoke(body, part);
    }
    return;
  }
  invoke_ = invoke;
  body_ = body;
  for (int helper = 0; helper < parts - 1; ++helper) {
    Post& post = posts_[index(helper)];
    post.given.fetch_add(1, std::memory_order_release);
    post.given.notify_one();
  }
  invoke(body, 0);
  for (int helper = 0; helper < parts - 1; ++helper) {
    const Post& post = posts_[index(helper)];
    await(post.done, post.given.load(std::memory_order_relaxed) - 1);
  }
  taken_.store(false, std::memory_order_release);
}

void HelperThreads::serve(int helper) noexcept {
  Post& post = posts_[index(helper)];
  for (std::uint32_t made = 0;; ++made) {
    await(post.given, made);
    if (stopping_) {
      return;
    }
    invoke_(body_, helper + 1);
    post.done.store(made + 1, std::memory_order_release);
    post.done.notify_one();
  }
}

}  // namespace unisono::comm
