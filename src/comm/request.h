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

struct RequestState;

// Properties of a received message.
struct Received {
  int source = kAnySource;  // kAnySource: none has come
  std::size_t bytes = 0;
};

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
};

// Guarded by the driver's mutex, except `done`.
struct RequestState {
  RequestDriver* driver = nullptr;                 // kept alive by the user's handle
  std::shared_ptr<const comm::Prepared> prepared;  // a collective
  std::shared_ptr<const comm::Prepared> counted;   // of which it is the first slice; or null
  comm::PendingTransfer transfer;                  // a send or recv, if prepared is null
  Call call = {};
  std::vector<std::size_t> lists = {};  // owns the lists that a v-form's call refers to
  std::uint64_t salt = 0;               // of its signature: contents of a fused operation
  bool waited = false;
  std::atomic<bool> done = false;
  std::unique_ptr<Error> error;
  std::function<void(const Error*)> on_done;
};

struct PlanState {
  std::string_view algorithm() const;  // with its parameters

  std::shared_ptr<Core> core;
  std::shared_ptr<const comm::Prepared> prepared;
  Call call;
};

}  // namespace unisono::detail
