#include "bootstrap/name_lookup.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace unisono::comm {
namespace {

// State shared by the lookup thread and the waiting thread; the thread that uses it last frees it.
struct NameRequest {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  LookupResult looked;
};

LookupResult ask_for(const std::string& host, const std::string& port, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  LookupResult looked;
  looked.error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  looked.found.reset(looked.error == 0 ? found : nullptr);
  return looked;
}

}  // namespace

// getaddrinfo() may wait for a server and cannot be cancelled then, so it runs in a thread of its
// own.
LookupResult look_up(const std::string& host, const std::string& port, const Deadline& deadline) {
  if (LookupResult looked = ask_for(host, port, AI_NUMERICHOST); looked.error == 0) {
    return looked;
  }
  const auto request = std::make_shared<NameRequest>();
  std::thread([request, host, port] {
    LookupResult looked = ask_for(host, port, 0);
    const std::lock_guard lock(request->mutex);
    request->looked = std::move(looked);
    request->is_done = true;
    request->done.notify_one();
  }).detach();
  std::unique_lock lock(request->mutex);
  while (!request->is_done) {
    deadline.throw_if_interrupted();
    const int wait_ms = deadline.poll_ms();
    if (wait_ms == 0) {
      return {.timed_out = true};
    }
    if (wait_ms < 0) {
      request->done.wait(lock);
    } else {
      request->done.wait_for(lock, std::chrono::milliseconds(wait_ms));
    }
  }
  return std::move(request->looked);
}

}  // namespace unisono::comm
