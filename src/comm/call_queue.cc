#include "comm/call_queue.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>
#include <utility>

#include "comm/group.h"
#include "comm/operations.h"
#include "comm/waiter.h"
#include "engine/executor.h"

namespace unisono::comm {

using engine::Progress;

CallQueue::Alone::Alone(CallQueue& queue, Fabric::Use use) : used_(queue.used_by(use)) {
  if (used_.exchange(true)) {
    queue.refuse_second_thread();
  }
  alone_ = queue.pending_.load() == 0;
  if (!alone_) {
    used_.store(false, std::memory_order_release);
  }
}

CallQueue::Planning::Planning(CallQueue& queue) : queue_(queue), lock_(queue.driving_) {
  queue.announce(queue.collecting_);
}

CallQueue::~CallQueue() {
  if (listed_ && group_.world().same_process()) {  // the child of a fork has no progress thread
    group_.world().progress().remove(*this);
  }
}

void CallQueue::announce(const std::atomic<bool>& used) {
  if (const int others = pending_.load(std::memory_order_relaxed); others != 0) {
    // A blocking call that runs alone has set `used` before this count became positive.
    pending_.store(others + 1, std::memory_order_relaxed);
  } else {
    pending_.fetch_add(1);  // not a store: it must not pass the load below
  }
  if (used.load()) {
    pending_.fetch_sub(1);
    refuse_second_thread();
  }
}

void CallQueue::refuse_second_thread() const {
  throw Error(ErrorCode::usage,
              "another thread is in a call on this communicator\nonly one thread at a time may use "
              "a communicator: make one per thread with split(), or serialize the calls",
              {.rank = group_.world().rank()});
}

int CallQueue::effective_timeout(int timeout_ms) const {
  return timeout_ms >= 0 ? timeout_ms : group_.world().options().timeout_ms;
}

// Removes an announced operation from the counts. The lock makes a store enough.
void CallQueue::count_out(const RequestState& request) {
  if (request.is_urgent) {
    urgent_.store(urgent_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  pending_.store(pending_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
}

void CallQueue::start(RequestState& request) {
  const detail::PostedCollective* const collective = request.collective.get();
  request.is_urgent = collective != nullptr || request.transfer.bytes > kShortTransfer;
  if (request.is_urgent) {
    urgent_.store(urgent_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  try {
    if (collective == nullptr) {
      start_transfer(request);
    } else {
      queue_.push_back(&request);
    }
  } catch (...) {
    count_out(request);
    throw;
  }
  // A short operation is completed at once. A long one is left to the progress thread or to wait(),
  // because the caller wants to compute meanwhile.
  if (collective != nullptr &&
      collective->call.count * size_of(collective->call.dtype) <= kShortTransfer) {
    drive();
  }
}

void CallQueue::start_transfer(RequestState& request) {
  request.transfer.owner = &request;
  request.transfer.place = moving_.size();
  moving_.push_back(&request);
  if (const int limit = effective_timeout(request.timeout_ms); limit > 0) {
    least_limit_ms_ = moving_.size() == 1 ? limit : std::min(least_limit_ms_, limit);
  }
  try {
    operations_.begin(request.transfer, false);
  } catch (...) {
    moving_.pop_back();
    throw;
  }
  take_finished();
}

std::unique_lock<std::mutex> CallQueue::lock_to_post() {
  std::unique_lock lock(driving_, std::try_to_lock);
  if (!lock) {
    callers_.fetch_add(1, std::memory_order_relaxed);
    lock.lock();
    callers_.fetch_sub(1, std::memory_order_relaxed);
  }
  return lock;
}

bool CallQueue::send_now(PendingTransfer& transfer) {
  const auto lock = lock_to_post();
  announce(transferring_);
  const bool sent = operations_.send_now(transfer);
  pending_.store(pending_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  return sent;
}

void CallQueue::post(RequestState& request) {
  request.driver = this;
  request.waited = false;
  Finished finished;
  bool unlisted = false;
  bool left_over = false;
  {
    const auto lock = lock_to_post();
    announce(request.collective != nullptr ? collecting_ : transferring_);
    has_progressed_.store(true, std::memory_order_relaxed);
    start(request);
    std::swap(finished, finished_);
    left_over = pending_.load(std::memory_order_relaxed) != 0;
    unlisted = left_over && !listed_;
    listed_ |= unlisted;
  }
  tell(finished);
  if (unlisted) {
    try {
      group_.world().progress().add(*this);
    } catch (const std::exception& error) {
      // The operation has begun, and the peers wait for this rank.
      group_.world().membership().abort().raise(error);
      drive_and_tell();
    }
  }
  if (left_over) {
    wake_progress();
  }
}

void CallQueue::complete(RequestState& request, std::unique_ptr<Error> error) {
  operations_.diagnosis().end_wait();
  request.error = std::move(error);
  if (request.on_done != nullptr) {
    if (request.error != nullptr) {
      group_.world().membership().abort().note_told();
    }
    finished_.push_back(
        [done = std::exchange(request.on_done, nullptr),
         failure = request.error == nullptr ? nullptr : std::make_shared<Error>(*request.error)] {
          done(failure.get());
        });
  }
  count_out(request);
  request.done.store(true, std::memory_order_release);  // last: its owner may free it now
}

void CallQueue::fail_all() {
  // Only the first collective may have begun.
  const auto fail = [this](RequestState& request) {
    const bool has_begun = std::exchange(running_, false);
    const Prepared* const prepared =
        request.collective == nullptr ? nullptr : request.collective->prepared.get();
    complete(request, std::make_unique<Error>(operations_.end(prepared, has_begun)));
  };
  while (!queue_.empty()) {
    RequestState& request = *queue_.front();
    queue_.pop_front();
    fail(request);
  }
  for (RequestState* const request : std::exchange(moving_, {})) {
    fail(*request);
  }
}

// Raises the error instead of throwing it (such as bad_alloc): there may be no caller to catch it,
// and the peers wait for this rank.
bool CallQueue::drive() {
  try {
    return drive_all();
  } catch (const std::exception& error) {
    group_.world().membership().abort().raise(error);
    fail_all();
    return true;
  }
}

bool CallQueue::drive_all() {
  if (group_.world().membership().abort().is_set()) {
    fail_all();
    return true;
  }
  const bool advanced = !queue_.empty() && drive_collectives();
  return (!moving_.empty() && drive_transfers()) || advanced;
}

bool CallQueue::drive_collectives() {
  RequestState& request = *queue_.front();
  const detail::PostedCollective& first = *request.collective;
  if (!running_) {
    operations_.begin(*first.prepared, first.call,
                      first.counted == nullptr ? *first.prepared : *first.counted, first.salt);
    running_ = true;
  }
  const Progress progress = operations_.poll();
  if (progress == Progress::idle && waiters_.load(std::memory_order_relaxed) != 0) {
    operations_.note_idle();
  } else {
    operations_.note_progress();
  }
  if (progress == Progress::failed) {
    operations_.diagnosis().raise_fault(operations_.latest());
    fail_all();
  } else if (progress == Progress::finished) {
    if (group_.world().membership().abort().is_set_meanwhile()) {
      fail_all();  // as in Operations::run()
      return true;
    }
    queue_.pop_front();
    running_ = false;
    operations_.finish(*first.prepared, first.call);
    complete(request, nullptr);
  }
  return progress != Progress::idle;
}

bool CallQueue::drive_transfers() {
  const auto progress = operations_.poll_transfers();
  if (progress == PointToPoint::Progress::failed) {
    operations_.raise_transfer_fault();
    fail_all();
    return true;
  }
  if (group_.world().membership().abort().is_set_meanwhile()) {
    fail_all();
    return true;
  }
  take_finished();
  return progress == PointToPoint::Progress::advanced;
}

void CallQueue::take_finished() {
  while (const PendingTransfer* const transfer = operations_.take_finished()) {
    RequestState& request = *transfer->owner;
    moving_[transfer->place] = moving_.back();
    moving_[transfer->place]->transfer.place = transfer->place;
    moving_.pop_back();
    operations_.end(request.transfer);
    complete(request, nullptr);
  }
}

void CallQueue::wake_progress() {
  group_.world().progress().wake(urgent_.load(std::memory_order_relaxed) != 0);
}

// A thread that waits and drives the operations meanwhile. When it stops waiting for any reason,
// the progress thread drives the remaining ones.
class CallQueue::Waiting {
 public:
  explicit Waiting(CallQueue& queue) : queue_(queue) {
    queue_.waiters_.fetch_add(1, std::memory_order_relaxed);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (queue_.waiters_.fetch_sub(1) == 1 && queue_.pending_.load() != 0) {
      queue_.has_progressed_.store(true, std::memory_order_relaxed);
      queue_.wake_progress();
    }
  }

 private:
  CallQueue& queue_;
};

void CallQueue::wait(RequestState& request, int timeout_ms) {
  await(request, timeout_ms);
  if (request.error != nullptr) {
    group_.world().membership().abort().note_told();
    throw Error(*request.error);
  }
}

// Prints one line for the first request, because the others have failed for the same reason.
void CallQueue::drop(RequestState& request) noexcept {
  try {
    await(request, -1);
    if (request.error != nullptr && !group_.world().membership().abort().note_told()) {
      std::fprintf(
          stderr,
          "unisono: rank %d destroyed a request without wait(), and the request failed: %s\n",
          group_.world().rank(), std::string(request.error->summary()).c_str());
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nobody can be told
  }
}

void CallQueue::await(RequestState& request, int timeout_ms) {
  World& world = group_.world();
  if (request.waited) {
    refuse_second_wait(world.rank());
  }
  request.waited = true;
  if (!world.same_process()) {
    world.check_usable();
  }
  if (request.done.load(std::memory_order_acquire)) {
    return;
  }
  const Waiting waiting(*this);
  Waiter waiter(world.wait_environment(),
                effective_timeout(timeout_ms >= 0 ? timeout_ms : request.timeout_ms));
  const auto poll = [&] {
    if (request.done.load(std::memory_order_acquire)) {
      return Polled::finished;
    }
    if (drive_and_tell()) {
      return Polled::advanced;
    }
    // Another thread may have completed the request without notifying this one.
    return request.done.load(std::memory_order_acquire) ? Polled::finished : Polled::idle;
  };
  Diagnosis& diagnosis = operations_.diagnosis();
  Diagnosis::TransferWait wait;
  const auto check = [&] {
    const Standing standing = world.standing(waiter.since(), 1);
    const std::lock_guard lock(driving_);
    if (request.collective == nullptr) {
      diagnosis.look_around(state_of(request.transfer), wait, standing);
    } else if (running_) {
      diagnosis.look_around(operations_.latest(), standing);
    }
  };
  for (;;) {
    const auto verdict = waiter.wait(poll, check);
    if (verdict == Waiter::Verdict::finished) {
      break;
    }
    if (verdict == Waiter::Verdict::timed_out) {
      const std::lock_guard lock(driving_);
      if (request.collective != nullptr) {
        diagnosis.raise_timeout(operations_.latest(), waiter.waited_s());
      } else {
        diagnosis.raise_transfer_timeout(state_of(request.transfer), waiter.waited_s());
      }
    }
    // The world has ended; the next poll completes the request with the reason.
  }
}

bool CallQueue::test(RequestState& request) {
  if (!group_.world().same_process()) {
    group_.world().check_usable();
  }
  if (!request.done.load(std::memory_order_acquire)) {
    drive_and_tell();
  }
  return request.done.load(std::memory_order_acquire);
}

void CallQueue::on_done(RequestState& request, std::function<void(const Error*)> tell) {
  {
    const std::lock_guard lock(driving_);
    if (!request.done.load(std::memory_order_acquire)) {
      request.on_done = std::move(tell);
      return;
    }
  }
  tell(request.error.get());
}

detail::Received CallQueue::received(const RequestState& request) const {
  if (request.collective != nullptr || request.transfer.send) {
    detail::refuse_received(group_.world().rank());
  }
  if (!request.done.load(std::memory_order_acquire)) {
    return {};
  }
  return {.source = request.transfer.peer, .bytes = request.transfer.bytes};
}

bool CallQueue::drive_and_tell() {
  Finished finished;
  bool advanced = false;
  {
    const std::lock_guard lock(driving_);
    advanced = drive();
    finished.swap(finished_);
  }
  tell(finished);
  return advanced;
}

bool CallQueue::drive_pending(Finished& finished) {
  if (callers_.load(std::memory_order_relaxed) != 0) {
    return false;  // mutexes are not fair: a thread that keeps driving would starve them
  }
  const std::lock_guard lock(driving_);
  const bool advanced = drive();
  if (advanced) {
    has_progressed_.store(true, std::memory_order_relaxed);
  }
  std::move(finished_.begin(), finished_.end(), std::back_inserter(finished));
  finished_.clear();
  return advanced;
}

void CallQueue::look_around_pending() {
  const std::lock_guard lock(driving_);
  if (running_) {
    operations_.diagnosis().look_around(operations_.latest());
  }
  check_deadlines();
}

// Checks the time limits of operations that no caller waits for. If a thread waits, its Waiter
// checks the limit.
void CallQueue::check_deadlines() {
  const auto now = std::chrono::steady_clock::now();
  if (has_progressed_.exchange(false, std::memory_order_relaxed)) {
    progressed_at_ = now;
  }
  const auto waited = now - progressed_at_;
  const double seconds = std::chrono::duration<double>(waited).count();
  const auto overdue = [&](const RequestState& request) {
    const int limit = effective_timeout(request.timeout_ms);
    return limit > 0 && waited > std::chrono::milliseconds(limit);
  };
  Diagnosis& diagnosis = operations_.diagnosis();
  if (running_ && overdue(*queue_.front())) {
    diagnosis.raise_timeout(operations_.latest(), seconds);
    return;
  }
  if (waited <= std::chrono::milliseconds(least_limit_ms_)) {
    return;  // there may be many
  }
  for (const auto& request : moving_) {
    if (overdue(*request)) {
      diagnosis.raise_transfer_timeout(state_of(request->transfer), seconds);
      return;
    }
  }
}

}  // namespace unisono::comm
