// Asynchronous operations: the queue, who drives it, and the progress thread.
#include <algorithm>
#include <utility>

#include "comm/core.h"

namespace unisono::detail {

using comm::PointToPoint;
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
    const std::lock_guard lock(driving_);
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

std::shared_ptr<RequestState> Core::transfer_async(const comm::Transfer& transfer) {
  check_usable();
  check_transfer(transfer);
  auto request = std::make_shared<RequestState>();
  request->transfer = transfer;
  return enqueue(request);
}

std::shared_ptr<RequestState> Core::enqueue(const std::shared_ptr<RequestState>& request) {
  request->core = this;
  if (grouping_) {
    request->waited = true;  // group() waits for it
    grouped_.push_back(request);
    return handle(request);
  }
  {
    const std::lock_guard lock(driving_);
    pending_.fetch_add(1, std::memory_order_relaxed);
    if (request->prepared != nullptr) {
      queue_.push_back(request);
    } else {
      transfers().post(request->transfer);
      moving_.push_back(request);
    }
    drive();  // what can start at once, starts
    if (!progress_.joinable() && pending_.load(std::memory_order_relaxed) != 0) {
      progress_ = std::thread([this] { progress_thread(); });
    }
  }
  work_->notify_one();
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
  Waiter waiter(*world_, effective_timeout(timeout_ms));
  const auto drive_once = [this] {
    const std::lock_guard lock(driving_);
    return drive();
  };
  // Another thread may have completed the request, and rings for nobody.
  const auto look = [&] { return drive_once() || request.done.load(std::memory_order_acquire); };
  int leaver = -1;
  while (!request.done.load(std::memory_order_acquire)) {
    if (drive_once()) {
      waiter.reset();
      continue;
    }
    if (request.done.load(std::memory_order_acquire) || waiter.spin()) {
      continue;
    }
    const auto verdict = waiter.pause(look, [&] {
      const std::lock_guard lock(driving_);
      if (request.prepared == nullptr) {
        look_for_leaver(request.transfer.peer, leaver);
        note_wait(request.transfer);
      } else if (running_) {
        look_around();
      }
    });
    if (verdict == Waiter::Verdict::timed_out) {
      const std::lock_guard lock(driving_);
      if (request.prepared != nullptr) {
        raise_timeout(waiter.waited_s());
      } else {
        raise_transfer_timeout(request.transfer, waiter.waited_s());
      }
    }
  }
  bool last = false;
  {
    const std::lock_guard lock(driving_);  // so that the progress thread cannot miss it
    last = waiters_.fetch_sub(1, std::memory_order_relaxed) == 1;
  }
  if (last) {
    work_->notify_one();
  }
  if (request.error != nullptr) {
    throw Error(*request.error);
  }
}

bool Core::test(RequestState& request) {
  if (!request.done.load(std::memory_order_acquire)) {
    const std::lock_guard lock(driving_);
    drive();
  }
  return request.done.load(std::memory_order_acquire);
}

// Moves what is pending while nobody waits, so that communication overlaps with computation.
void Core::progress_thread() {
  std::unique_lock lock(driving_);
  Waiter waiter(*world_, 0);
  while (!stopping_) {
    work_->wait(lock, [this] {
      return stopping_ || (pending_.load(std::memory_order_relaxed) != 0 &&
                           waiters_.load(std::memory_order_relaxed) == 0);
    });
    if (stopping_) {
      break;
    }
    if (drive()) {
      waiter.reset();
      continue;
    }
    lock.unlock();
    if (!waiter.spin()) {
      waiter.pause(
          [this] {
            const std::lock_guard again(driving_);
            return drive();
          },
          [this] {
            const std::lock_guard again(driving_);
            if (running_) {
              look_around();
            }
          });
    }
    lock.lock();
  }
}

}  // namespace unisono::detail
