#include "comm/request.h"

#include <cstdio>
#include <exception>

namespace unisono::detail {
namespace {

// Requests share its states, so it changes nothing.
class FinishedSends final : public RequestDriver {
 public:
  FinishedSends() {
    for (RequestState* const state : {&new_, &waited_}) {
      state->driver = this;
      state->transfer.send = true;
      state->done = true;
    }
    waited_.waited = true;
  }
  // The pointer does not own the state, which lives until the program ends.
  std::shared_ptr<RequestState> state(bool waited) noexcept {
    return {std::shared_ptr<void>(), waited ? &waited_ : &new_};
  }
  void wait(RequestState& request, int /*timeout_ms*/) override {
    if (request.waited) {
      refuse_second_wait(-1);
    }
  }
  void drop(RequestState& /*request*/) noexcept override {}
  bool test(RequestState& /*request*/) override { return true; }
  void on_done(RequestState& /*request*/, std::function<void(const Error*)> tell) override {
    tell(nullptr);
  }
  Received received(const RequestState& /*request*/) const override { refuse_received(-1); }

 private:
  RequestState new_;
  RequestState waited_;
};

}  // namespace

void RequestDriver::drop(RequestState& request) noexcept {
  try {
    wait(request, -1);
  } catch (const std::exception& error) {
    if (std::uncaught_exceptions() == 0) {
      std::fprintf(stderr, "unisono: a request was destroyed without wait(), and it failed: %s\n",
                   error.what());
    }
  }
}

void RequestDriver::refuse_second_wait(int rank) {
  throw Error(ErrorCode::usage, "this request has been waited for already\ncall wait() once",
              {.rank = rank});
}

void refuse_received(int rank) {
  throw Error(
      ErrorCode::usage,
      "only a receive has a source and a length\ncall source() and received() on the request of "
      "recv_async()",
      {.rank = rank});
}

std::shared_ptr<RequestState> finished_send(bool waited) noexcept {
  static FinishedSends* const sends = new FinishedSends;  // requests may outlive static objects
  return sends->state(waited);
}

}  // namespace unisono::detail
