// The states behind the public handles: an operation under way, a plan, a region.
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

// Who makes the call of a request.
class UNISONO_PRIVATE RequestDriver {
 public:
  // Throws what ended the operation.
  virtual void wait(RequestState& request, int timeout_ms) = 0;
  // The same where nobody can catch: reports an error on stderr, unless the program has been told
  // what ended all operations.
  virtual void drop(RequestState& request) noexcept;
  virtual bool test(RequestState& request) = 0;
  virtual void on_done(RequestState& request, std::function<void(const Error*)> tell) = 0;
  // The rank that the message of a receive came from; kAnySource: none has come.
  virtual int source(const RequestState& request) const = 0;

 protected:
  ~RequestDriver() = default;
};

// Guarded by the driver's mutex, but for `done`.
struct RequestState {
  RequestDriver* driver = nullptr;                 // kept alive by the user's handle
  std::shared_ptr<const comm::Prepared> prepared;  // a collective
  std::shared_ptr<const comm::Prepared> counted;   // of which it is the first slice; or null
  comm::PendingTransfer transfer;                  // or a send or recv, where prepared is null
  Call call = {};
  std::vector<std::size_t> lists = {};  // owns what the spans of a v-form's call view
  std::uint64_t salt = 0;               // of its signature: what went into a fused operation
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
