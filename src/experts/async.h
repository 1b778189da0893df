// The asynchronous calls of an exchange: a thread makes them one after the other. They have a
// communicator and memory of their own, so they never interfere with the caller's other calls.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/fork_detector.h"
#include "comm/request.h"
#include "experts/state.h"

namespace unisono::experts {

class AsyncCalls final : public detail::RequestDriver,
                         public std::enable_shared_from_this<AsyncCalls> {
 public:
  using RequestState = detail::RequestState;
  using Work = std::function<void(detail::ExpertExchangeState&)>;

  // Collective. `of` makes the routings.
  explicit AsyncCalls(const detail::ExpertExchangeState& of);
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;
  ~AsyncCalls() = default;  // after close()

  // `label` labels the calls that the work makes.
  Request post(std::string label, Work work);
  // Errors: usage, in the child of a fork.
  void check_process() const;
  // Waits until all calls have been made and returns true. Returns false in the child of a fork,
  // where no thread makes them and this object must not be destroyed. Ends the process if it is
  // called in a function of on_done().
  bool close();

  void wait(RequestState& request, int timeout_ms) override;
  bool test(RequestState& request) override;
  void on_done(RequestState& request, std::function<void(const Error*)> tell) override;
  detail::Received received(const RequestState& request) const override;

 private:
  struct Posted {
    std::shared_ptr<RequestState> request;  // shared with the caller
    std::string label;
    Work work;
    std::unique_ptr<Error> unnamed;  // the error, if there is no memory for an Error
  };
  void run();
  std::unique_ptr<Error> make(Posted& posted) noexcept;

  ForkDetector fork_;
  Communicator comm_;
  std::optional<detail::ExpertExchangeState> state_;  // until close()
  std::mutex mutex_;                                  // guards the members below, and the requests
  std::condition_variable changed_;
  std::deque<Posted> queue_;
  bool closing_ = false;
  std::thread thread_;
};

// Starts `work`, with this routing, as the next call. The call gets the caller's label, followed by
// the routing's load. The first call of an exchange is collective, and fails on all ranks if one of
// them makes another call or has no thread.
Request start_async(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
                    AsyncCalls::Work work);

}  // namespace unisono::experts
