#include "experts/async.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "comm/handles.h"
#include "experts/load.h"
#include "experts/memory.h"

namespace unisono::experts {
namespace {

void label_groups(detail::ExpertExchangeState& own, std::string_view text) {
  detail::label_group(*own.comm, text);
  if (&own.here() != own.comm && own.is_read()) {
    detail::label_group(own.ranks_here, text);
  }
}

}  // namespace

AsyncCalls::AsyncCalls(const detail::ExpertExchangeState& of)
    : comm_(of.comm->split(0, of.comm->rank())) {
  state_.emplace(comm_, of.options);
  state_->identity = of.identity;
  state_->meet();
  Mistake mistake;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    mistake = {.code = ErrorCode::resource,
               .text = std::string("cannot start the thread that makes the calls: ") +
                       error.what() +
                       "\nraise the limits on threads and memory (ulimit -u, ulimit -v)"};
  }
  try {
    agree(comm_, mistake, to_text(CallKind::async));
    reserve(*state_, of.max_tokens, CallKind::async);
  } catch (...) {
    close();
    throw;
  }
}

bool AsyncCalls::close() {
  if (!fork_.same_process()) {
    return !thread_.joinable();
  }
  if (thread_.get_id() == std::this_thread::get_id()) {
    std::fputs(
        "unisono: a function passed to on_done() destroys the exchange on whose thread it "
        "runs\ndestroy the exchange on another thread\n",
        stderr);
    std::abort();
  }
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  const std::lock_guard lock(mutex_);
  state_.reset();  // requests may outlive the communicator
  comm_ = detail::Handles::communicator(nullptr);
  return true;
}

void AsyncCalls::check_process() const {
  if (!fork_.same_process()) {
    throw Error(ErrorCode::usage,
                "this process is a fork of the one that made the exchange\n"
                "an exchange cannot be used in the child: exec a program there, or fork before "
                "connecting");
  }
}

Request AsyncCalls::post(std::string label, Work work) {
  struct Handle {
    std::shared_ptr<RequestState> request;
    std::shared_ptr<AsyncCalls> calls;
  };
  auto request = std::make_shared<RequestState>();
  request->driver = this;
  auto both = std::make_shared<Handle>(Handle{request, shared_from_this()});
  auto unnamed = std::make_unique<Error>(
      ErrorCode::resource, "experts: an asynchronous call failed\nlook at this rank's output");
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({.request = request,
                      .label = std::move(label),
                      .work = std::move(work),
                      .unnamed = std::move(unnamed)});
  }
  changed_.notify_all();  // nothing can fail from here on
  return detail::Handles::request(std::shared_ptr<RequestState>(std::move(both), request.get()));
}

// An exception other than Error reaches only this rank while peers wait for it, so abort the
// communicator.
std::unique_ptr<Error> AsyncCalls::make(Posted& posted) noexcept {
  try {
    try {
      label_groups(*state_, posted.label);
      posted.work(*state_);
      return nullptr;
    } catch (const Error& error) {
      return std::make_unique<Error>(error);
    } catch (const std::exception& error) {
      auto kept = std::make_unique<Error>(ErrorCode::resource,
                                          std::string("experts: an asynchronous call failed: ") +
                                              error.what() + "\nlook at this rank's output");
      comm_.abort(kept->message());
      return kept;
    }
  } catch (...) {
    try {
      comm_.abort(posted.unnamed->message());
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory; the caller gets the error
    }
    return std::move(posted.unnamed);
  }
}

void AsyncCalls::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    Posted posted = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::unique_ptr<Error> error = make(posted);
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
  if (!fork_.same_process()) {
    request.waited = true;
    check_process();
  }
  std::unique_lock lock(mutex_);
  if (request.waited) {
    refuse_second_wait(-1);
  }
  request.waited = true;
  const auto is_done = [&request] { return request.done.load(std::memory_order_acquire); };
  // Each step of the call has the communicator's limit.
  if (timeout_ms <= 0) {
    changed_.wait(lock, is_done);
  } else if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_done)) {
    const std::string text = "experts: an asynchronous call did not end within " +
                             std::to_string(timeout_ms) +
                             " ms\nfind the rank that has not started it";
    comm_.abort(text);
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
  check_process();
  return request.done.load(std::memory_order_acquire);
}

void AsyncCalls::on_done(RequestState& request, std::function<void(const Error*)> tell) {
  check_process();
  {
    const std::lock_guard lock(mutex_);
    if (!request.done.load(std::memory_order_acquire)) {
      request.on_done = std::move(tell);
      return;
    }
  }
  tell(request.error.get());
}

detail::Received AsyncCalls::received(const RequestState& /*request*/) const {
  throw Error(
      ErrorCode::usage,
      "only a receive has a source and a length\ncall source() and received() on the request "
      "of recv_async()");
}

Request start_async(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
                    AsyncCalls::Work work) {
  if (state.async == nullptr) {
    open(*state.comm, {.kind = CallKind::async}, {});
    state.async = std::make_shared<AsyncCalls>(state);
  }
  state.async->check_process();
  return state.async->post(
      label_with_load(state.comm->label(), routing),
      [most = state.max_tokens, work = std::move(work)](detail::ExpertExchangeState& own) {
        own.max_tokens = most;
        work(own);
      });
}

}  // namespace unisono::experts
