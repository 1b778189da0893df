// Runs the asynchronous calls of an exchange, one after the other, in a thread. They use a separate
// communicator and separate memory, so they never interfere with the caller's other calls.
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

  // Collective. `of` is the exchange that creates the routings.
  explicit AsyncCalls(const detail::ExpertExchangeState& of);
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;
  ~AsyncCalls() = default;  // REQUIRES: close()

  // Queues `work`, whose calls get `label`.
  Request post(std::string label, Work work);
  // Errors: usage, in a forked child.
  void check_process() const;
  // Waits until all calls have completed and returns true. In a forked child, which has no thread
  // for the calls, returns false; this object must then not be destroyed. Ends the process if an
  // on_done() callback calls it.
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
    std::unique_ptr<Error> unnamed;  // used if there is no memory for another Error
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

// Starts `work` with this routing as the next call. The call's label is the caller's label followed
// by the routing's load. The exchange's first asynchronous call is collective: it fails on all
// ranks if a rank makes a different call or cannot start a thread.
Request start_async(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
                    AsyncCalls::Work work);

}  // namespace unisono::experts
