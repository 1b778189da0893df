// Asynchronous operations: the queue, and who drives it.
#include <algorithm>
#include <iterator>
#include <utility>

#include "comm/core.h"

namespace unisono::detail {

using comm::PointToPoint;
using comm::Polled;
using comm::Waiter;
using engine::Progress;

namespace {

// The lists of a v-form belong to the caller of run_async(), whose spans may be gone before the
// operation begins.
void own_lists(RequestState& request) {
  Call& call = request.call;
  const std::span<const std::size_t>* spans[] = {&call.counts, &call.displs, &call.recv_counts,
                                                 &call.recv_displs};
  std::size_t size = 0;
  for (const auto* span : spans) {
    size += span->size();
  }
  request.lists.reserve(size);
  for (auto* span : {&call.counts, &call.displs, &call.recv_counts, &call.recv_displs}) {
    const std::size_t begin = request.lists.size();
    request.lists.insert(request.lists.end(), span->begin(), span->end());
    *span = {request.lists.data() + begin, span->size()};
  }
  call.algorithm = {};  // already in the plan
}

}  // namespace

std::shared_ptr<RequestState> Core::run_async(const Call& call, std::uint64_t salt) {
  check_usable();
  auto request = std::make_shared<RequestState>();
  {
    const Planning planning(*this);
    request->prepared = planner_.find(call);
  }
  request->call = call;
  request->salt = salt;
  own_lists(*request);
  return enqueue(request);
}

std::shared_ptr<RequestState> Core::start_async(const PlanState& plan) {
  check_usable();
  auto request = std::make_shared<RequestState>();
  request->prepared = plan.prepared;
  request->call = plan.call;
  own_lists(*request);
  return enqueue(request);
}

std::shared_ptr<RequestState> Core::transfer_async(const comm::Transfer& transfer, int timeout_ms) {
  check_usable();
  check_transfer(transfer);
  auto request = std::make_shared<RequestState>();
  request->transfer = transfer;
  request->call.timeout_ms = timeout_ms;
  return enqueue(request);
}

std::shared_ptr<RequestState> Core::enqueue(const std::shared_ptr<RequestState>& request) {
  request->core = this;
  if (grouping_) {
    request->waited = true;  // group() waits for it
    grouped_.push_back(request);
    return handle(request);
  }
  comm::Finished finished;
  bool unlisted = false;
  bool left_over = false;
  {
    const std::lock_guard lock(driving_);
    announce(request->prepared != nullptr ? collecting_ : transferring_);
    progressed_at_ = std::chrono::steady_clock::now();
    if (request->prepared != nullptr) {
      queue_.push_back(request);
    } else {
      comm::PointToPoint& queue = transfers();
      record_begin(request->transfer);
      queue.post(request->transfer);
      moving_.push_back(request);
    }
    drive();  // what can start at once, starts
    finished.swap(finished_);
    left_over = pending_.load(std::memory_order_relaxed) != 0;
    unlisted = left_over && !listed_;
    listed_ |= unlisted;
  }
  tell(finished);
  if (unlisted) {
    try {
      world_->progress().add(*this);
    } catch (const std::exception& error) {
      world_->raise(error);  // it has begun, and the peers wait for this rank
      drive_and_tell();
    }
  }
  if (left_over) {
    world_->progress().wake();
  }
  return handle(request);
}

// The user's handle keeps the core alive; the queue's does not, so that the core never ends in its
// own thread.
std::shared_ptr<RequestState> Core::handle(const std::shared_ptr<RequestState>& request) {
  struct Handle {
    std::shared_ptr<RequestState> request;
    std::shared_ptr<Core> core;
  };
  auto both = std::make_shared<Handle>(Handle{request, shared_from_this()});
  RequestState* state = request.get();
  return {std::move(both), state};
}

void Core::complete(RequestState& request, std::unique_ptr<Error> error) {
  end_wait();
  request.error = std::move(error);
  if (request.on_done != nullptr) {
    finished_.push_back(
        [done = std::exchange(request.on_done, nullptr),
         failure = request.error == nullptr ? nullptr : std::make_shared<Error>(*request.error)] {
          done(failure.get());
        });
  }
  pending_.fetch_sub(1, std::memory_order_release);
  request.done.store(true, std::memory_order_release);
}

void Core::fail_all() {
  const auto fail = [this](RequestState& request) {
    try {
      throw_abort(request.prepared.get());
    } catch (const Error& error) {
      complete(request, std::make_unique<Error>(error));
    }
  };
  while (!queue_.empty()) {
    const auto request = std::move(queue_.front());
    queue_.pop_front();
    fail(*request);
  }
  for (const auto& request : std::exchange(moving_, {})) {
    fail(*request);
  }
  running_ = false;
}

// What it throws (a lack of memory) may have nobody to go to, and the peers wait for this rank.
bool Core::drive() {
  try {
    return drive_all();
  } catch (const std::exception& error) {
    world_->raise(error);
    fail_all();
    return true;
  }
}

bool Core::drive_all() {
  if (world_->aborted()) {
    fail_all();
    return true;
  }
  bool advanced = false;
  if (!queue_.empty()) {
    RequestState& first = *queue_.front();
    if (!running_) {
      begin(*first.prepared, first.call, first.salt);
      running_ = true;
    }
    const Progress progress = executor_.poll();
    advanced = progress != Progress::idle;
    if (progress == Progress::failed) {
      raise_fault();
      fail_all();
      return true;
    }
    if (progress == Progress::finished && world_->aborted_meanwhile()) {
      fail_all();  // as in wait_blocking()
      return true;
    }
    if (progress == Progress::finished) {
      const auto request = std::move(queue_.front());
      queue_.pop_front();
      running_ = false;
      finish(*request->prepared, request->call);
      complete(*request, nullptr);
    }
  }
  if (!moving_.empty()) {
    const auto progress = transfers().poll();
    if (progress == PointToPoint::Progress::failed) {
      raise_transfer_fault();
      fail_all();
      return true;
    }
    if (world_->aborted_meanwhile()) {
      fail_all();
      return true;
    }
    advanced |= progress == PointToPoint::Progress::advanced;
    std::erase_if(moving_, [this](const std::shared_ptr<RequestState>& request) {
      if (!PointToPoint::finished(request->transfer)) {
        return false;
      }
      record_end(request->transfer);
      complete(*request, nullptr);
      return true;
    });
  }
  return advanced;
}

void Core::wait(RequestState& request, int timeout_ms) {
  if (request.waited) {
    throw Error(ErrorCode::usage, "this request has been waited for already\nwait once",
                {.rank = world_->rank()});
  }
  request.waited = true;
  if (!world_->same_process()) {
    check_usable();
  }
  waiters_.fetch_add(1, std::memory_order_relaxed);
  Waiter waiter(*world_, effective_timeout(timeout_ms >= 0 ? timeout_ms : request.call.timeout_ms));
  const auto poll = [&] {
    if (request.done.load(std::memory_order_acquire)) {
      return Polled::finished;
    }
    if (drive_and_tell()) {
      return Polled::advanced;
    }
    // Another thread may have completed the request, and rings for nobody.
    return request.done.load(std::memory_order_acquire) ? Polled::finished : Polled::idle;
  };
  int leaver = -1;
  const auto check = [&] {
    const std::lock_guard lock(driving_);
    if (request.prepared == nullptr) {
      look_for_leaver(request.transfer.peer, leaver);
      note_wait(request.transfer);
    } else if (running_) {
      look_around();
    }
  };
  for (;;) {
    const auto verdict = waiter.wait(poll, check);
    if (verdict == Waiter::Verdict::finished) {
      break;
    }
    if (verdict == Waiter::Verdict::timed_out) {
      const std::lock_guard lock(driving_);
      if (request.prepared != nullptr) {
        raise_timeout(waiter.waited_s());
      } else {
        raise_transfer_timeout(request.transfer, waiter.waited_s());
      }
    }
    // The world has ended now, and the next poll completes the request with the reason.
  }
  bool last = false;
  {
    const std::lock_guard lock(driving_);  // so that the progress thread cannot miss it
    last = waiters_.fetch_sub(1, std::memory_order_relaxed) == 1 &&
           pending_.load(std::memory_order_relaxed) != 0;
    if (last) {
      progressed_at_ = std::chrono::steady_clock::now();
    }
  }
  if (last) {
    world_->progress().wake();
  }
  if (request.error != nullptr) {
    throw Error(*request.error);
  }
}

bool Core::test(RequestState& request) {
  if (!world_->same_process()) {
    check_usable();
  }
  if (!request.done.load(std::memory_order_acquire)) {
    drive_and_tell();
  }
  return request.done.load(std::memory_order_acquire);
}

void Core::on_done(RequestState& request, std::function<void(const Error*)> tell) {
  {
    const std::lock_guard lock(driving_);
    if (!request.done.load(std::memory_order_acquire)) {
      request.on_done = std::move(tell);
      return;
    }
  }
  tell(request.error.get());
}

int Core::source(const RequestState& request) const {
  if (request.prepared != nullptr || request.transfer.send) {
    throw Error(ErrorCode::usage, "only a receive has a source\nask the request of recv_async()",
                {.rank = world_->rank()});
  }
  return request.done.load(std::memory_order_acquire) ? request.transfer.peer : kAnySource;
}

void Core::tell(const comm::Finished& finished) {
  for (const auto& done : finished) {
    done();
  }
}

bool Core::drive_and_tell() {
  comm::Finished finished;
  bool advanced = false;
  {
    const std::lock_guard lock(driving_);
    advanced = drive();
    finished.swap(finished_);
  }
  tell(finished);
  return advanced;
}

bool Core::drive_pending(comm::Finished& finished) {
  const std::lock_guard lock(driving_);
  const bool advanced = drive();
  if (advanced) {
    progressed_at_ = std::chrono::steady_clock::now();
  }
  std::move(finished_.begin(), finished_.end(), std::back_inserter(finished));
  finished_.clear();
  return advanced;
}

void Core::look_around_pending() {
  const std::lock_guard lock(driving_);
  if (running_) {
    look_around();
  }
  check_deadlines();
}

// Of operations that nobody waits for; who waits has the time in its Waiter.
void Core::check_deadlines() {
  const auto waited = std::chrono::steady_clock::now() - progressed_at_;
  const double seconds = std::chrono::duration<double>(waited).count();
  const auto overdue = [&](const RequestState& request) {
    const int limit = effective_timeout(request.call.timeout_ms);
    return limit > 0 && waited > std::chrono::milliseconds(limit);
  };
  if (running_ && overdue(*queue_.front())) {
    raise_timeout(seconds);
    return;
  }
  for (const auto& request : moving_) {
    if (overdue(*request)) {
      raise_transfer_timeout(request->transfer, seconds);
      return;
    }
  }
}

}  // namespace unisono::detail
