// The states behind the public handles: an operation in progress, a plan, and a region.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/private.h"
#include "comm/point_to_point.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {

struct Prepared;

}  // namespace unisono::comm

namespace unisono::detail {

class Core;
struct RequestState;

// Properties of a received message.
struct Received {
  int source = kAnySource;  // kAnySource: none has come
  std::size_t bytes = 0;
};

// Throws usage, because only a receive has these properties. `rank` is this world rank, or -1 if it
// is unknown.
[[noreturn]] void refuse_received(int rank);

// Completes the operation of a request.
class UNISONO_PRIVATE RequestDriver {
 public:
  // Throws the error that ended the operation.
  virtual void wait(RequestState& request, int timeout_ms) = 0;
  // As wait(), when no caller can catch an error: prints the error on stderr, unless the program
  // has already received the error that ended all operations.
  virtual void drop(RequestState& request) noexcept;
  virtual bool test(RequestState& request) = 0;
  virtual void on_done(RequestState& request, std::function<void(const Error*)> tell) = 0;
  virtual Received received(const RequestState& request) const = 0;

 protected:
  ~RequestDriver() = default;
  // Throws usage. `rank` is this world rank, or -1 if it is unknown.
  [[noreturn]] static void refuse_second_wait(int rank);
};

// An asynchronous collective. It is separate, because a window of messages has many requests.
struct PostedCollective {
  std::shared_ptr<const comm::Prepared> prepared;
  std::shared_ptr<const comm::Prepared> counted;  // of which it is the first slice; or null
  Call call = {};
  std::vector<std::size_t> lists = {};  // owns the lists that a v-form's call refers to
  std::uint64_t salt = 0;               // of its signature: contents of a fused operation
};

// Guarded by the driver's mutex, except `done`. The driver refers to it until it is done.
struct RequestState {
  RequestState() = default;
  RequestState(const RequestState&) = delete;
  RequestState& operator=(const RequestState&) = delete;
  ~RequestState() {
    if (driver != nullptr && !waited && !done.load(std::memory_order_acquire)) {
      driver->drop(*this);
    }
  }

  std::shared_ptr<Core> core;       // keeps the driver alive; nullptr in src/experts
  RequestDriver* driver = nullptr;  // nullptr before the operation is posted
  std::unique_ptr<PostedCollective> collective;
  comm::PendingTransfer transfer;  // a send or recv, if `collective` is null
  int timeout_ms = -1;
  bool waited = false;
  bool is_urgent = false;  // the progress thread should move it at once
  std::atomic<bool> done = false;
  std::unique_ptr<Error> error;
  std::function<void(const Error*)> on_done;
};

// The state of sends that their posts have finished: one for those that nobody has waited for yet,
// and one for the others. Most sends are short, and need no state of their own.
std::shared_ptr<RequestState> finished_send(bool waited) noexcept;

struct PlanState {
  std::string_view algorithm() const;  // with its parameters

  std::shared_ptr<Core> core;
  std::shared_ptr<const comm::Prepared> prepared;
  Call call;
};

}  // namespace unisono::detail
