#include "experts/async.h"

#include <chrono>
#include <string>
#include <utility>

#include "experts/memory.h"

namespace unisono::experts {

AsyncCalls::AsyncCalls(const detail::ExchangeState& of)
    : comm_(of.comm->split(0, of.comm->rank())), state_(comm_, of.options) {
  state_.identity = of.identity;
  state_.meet();
  reserve(state_, of.max_tokens, CallKind::async);
  thread_ = std::thread([this] { run(); });
}

void AsyncCalls::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Request AsyncCalls::post(Work work) {
  struct Handle {
    std::shared_ptr<RequestState> request;
    std::shared_ptr<AsyncCalls> calls;
  };
  auto request = std::make_shared<RequestState>();
  request->driver = this;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({.request = request, .work = std::move(work)});
  }
  changed_.notify_all();
  auto both = std::make_shared<Handle>(Handle{request, shared_from_this()});
  return Request(std::shared_ptr<RequestState>(std::move(both), request.get()));
}

// What is no Error has nobody to go to but this rank, and the peers wait for it.
std::unique_ptr<Error> AsyncCalls::make(const Work& work) noexcept {
  try {
    work(state_);
    return nullptr;
  } catch (const Error& error) {
    return std::make_unique<Error>(error);
  } catch (const std::exception& error) {
    const std::string text = std::string("experts: an asynchronous call failed: ") + error.what() +
                             "\nlook at this rank";
    comm_.abort(text);
    return std::make_unique<Error>(ErrorCode::resource, text);
  }
}

void AsyncCalls::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    const Posted posted = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::unique_ptr<Error> error = make(posted.work);
    lock.lock();
    RequestState& request = *posted.request;
    request.error = std::move(error);
    request.done.store(true, std::memory_order_release);
    const auto tell = std::exchange(request.on_done, nullptr);
    lock.unlock();
    changed_.notify_all();
    if (tell != nullptr) {
      tell(request.error.get());
    }
    lock.lock();
  }
}

void AsyncCalls::wait(RequestState& request, int timeout_ms) {
  std::unique_lock lock(mutex_);
  if (request.waited) {
    throw Error(ErrorCode::usage, "this request has been waited for already\nwait once");
  }
  request.waited = true;
  const auto is_done = [&request] { return request.done.load(std::memory_order_acquire); };
  // Each step of the call has the communicator's limit.
  if (timeout_ms <= 0) {
    changed_.wait(lock, is_done);
  } else if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_done)) {
    const std::string text = "experts: an asynchronous call did not end within " +
                             std::to_string(timeout_ms) +
                             " ms\nlook for the rank that has not begun it";
    lock.unlock();
    comm_.abort(text);
    lock.lock();
    changed_.wait(lock, is_done);
    if (request.error != nullptr) {
      throw Error(ErrorCode::timeout, text);
    }
  }
  if (request.error != nullptr) {
    throw Error(*request.error);
  }
}

bool AsyncCalls::test(RequestState& request) {
  return request.done.load(std::memory_order_acquire);
}

void AsyncCalls::on_done(RequestState& request, std::function<void(const Error*)> tell) {
  {
    const std::lock_guard lock(mutex_);
    if (!request.done.load(std::memory_order_acquire)) {
      request.on_done = std::move(tell);
      return;
    }
  }
  tell(request.error.get());
}

int AsyncCalls::source(const RequestState& /*request*/) const {
  throw Error(ErrorCode::usage, "only a receive has a source\nask the request of recv_async()");
}

Request start_async(detail::ExchangeState& state, const Mistake& mistake, AsyncCalls::Work work) {
  if (state.async == nullptr) {
    open(*state.comm, {.kind = CallKind::async}, mistake);
    state.async = std::make_shared<AsyncCalls>(state);
  }
  return state.async->post(
      [most = state.max_tokens, work = std::move(work)](detail::ExchangeState& own) {
        own.max_tokens = most;
        work(own);
      });
}

}  // namespace unisono::experts
