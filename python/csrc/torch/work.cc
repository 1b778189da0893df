#include "work.h"

#include <ATen/core/ivalue.h>

#include <deque>
#include <thread>
#include <utility>

#include "convert.h"

namespace unisono_torch {
namespace {

// Ends futures, on one thread. What hangs on a future may be Python, may start operations and may
// even wait for them: so never on the progress thread, and on one more thread when one is stuck.
class Enders {
 public:
  static Enders& of_process() {
    static auto* enders = new Enders;  // never destroyed: its threads may outlive main()
    return *enders;
  }
  void post(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    work_.notify_one();
    const std::uint64_t before = finished_;
    const auto moves = [&] { return busy_ < threads_ || finished_ != before; };
    if (threads_ == 0 || !freed_.wait_for(lock, kPatience, moves)) {
      ++threads_;
      std::thread([this] { run(); }).detach();
    }
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const bool some =
          work_.wait_for(lock, std::chrono::seconds(10), [this] { return !tasks_.empty(); });
      if (!some && threads_ > 1) {
        --threads_;
        return;
      }
      if (!some) {
        continue;
      }
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      ++busy_;
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      --busy_;
      ++finished_;
      freed_.notify_all();
    }
  }

  // Most of what hangs on futures is done by then.
  static constexpr auto kPatience = std::chrono::milliseconds(2);

  std::mutex mutex_;  // guards what follows
  std::condition_variable work_;
  std::condition_variable freed_;
  std::deque<std::function<void()>> tasks_;
  std::size_t threads_ = 0;
  std::size_t busy_ = 0;  // of them
  std::uint64_t finished_ = 0;
};

}  // namespace

void Flights::begin() {
  const std::lock_guard lock(mutex_);
  ++flying_;
}

void Flights::end() {
  const std::lock_guard lock(mutex_);
  --flying_;
  landed_.notify_all();
}

bool Flights::wait_for_all(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return landed_.wait_for(lock, timeout, [this] { return flying_ == 0; });
}

std::optional<unisono::ErrorCode> Flights::failure() const {
  const int code = failure_;
  return code < 0 ? std::nullopt : std::optional(static_cast<unisono::ErrorCode>(code));
}

Operation::Operation(Description description, std::shared_ptr<Flights> flights)
    : Work(description.rank, description.type, description.title, description.inputs),
      outputs_(std::move(description.outputs)),
      held_(std::move(description.held)),
      finish_(std::move(description.finish)),
      sequence_(description.sequence),
      flights_(std::move(flights)) {}

void Operation::complete_now() {
  flights_->begin();
  complete(nullptr);
  flights_->end();
}

void Operation::follow(std::vector<unisono::Request> requests) {
  requests_ = std::move(requests);
  flights_->begin();
  auto self = c10::intrusive_ptr<Operation>::reclaim_copy(this);
  // The group counts this flight until nothing of it is left on the thread that ends it.
  requests_.back().on_done([self, flights = flights_](const unisono::Error* error) mutable {
    self->complete(error);
    self.reset();
    flights->end();
  });
}

void Operation::complete(const unisono::Error* error) {
  std::exception_ptr failure;
  if (error != nullptr) {
    flights_->note(error->code());
    failure = to_torch(*error);
  } else if (finish_ != nullptr) {
    const at::ThreadLocalStateGuard guard(issuer_);
    try {
      finish_();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (error == nullptr && !requests_.empty() &&
      (opType_ == c10d::OpType::RECVANYSOURCE || opType_ == c10d::OpType::RECV)) {
    source_ = requests_.back().source();
  }
  finish_ = nullptr;
  held_.clear();
  if (!claimed_.exchange(true)) {
    requests_.clear();
  }
  done_.store(true, std::memory_order_release);
  finish(failure);
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(future_mutex_);
    ended_ = true;
    future = future_;
  }
  if (future != nullptr) {
    Enders::of_process().post([future, outputs = outputs_, failure, issuer = issuer_] {
      const at::ThreadLocalStateGuard guard(issuer);
      end_future(future, outputs, failure);
    });
  }
}

void Operation::end_future(const c10::intrusive_ptr<c10::ivalue::Future>& future,
                           const std::vector<at::Tensor>& outputs, std::exception_ptr failure) {
  if (failure != nullptr) {
    future->setError(std::move(failure));
  } else {
    future->markCompleted(c10::IValue(outputs));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> Operation::getFuture() {
  bool ended = false;
  {
    const std::lock_guard lock(future_mutex_);
    if (future_ != nullptr) {
      return future_;
    }
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    ended = ended_;
  }
  if (ended) {
    end_future(future_, outputs_, exception());
  }
  return future_;
}

bool Operation::isCompleted() {
  return done_.load(std::memory_order_acquire);
}

// The first who waits drives the operation in its own thread; with a limit of its own, a wait
// leaves that to the progress thread, because giving up must not end the operation.
bool Operation::wait(std::chrono::milliseconds timeout) {
  const bool limited = timeout > kNoTimeout;
  const bool first = !limited && !claimed_.exchange(true);
  if (first) {
    try {
      requests_.back().wait();
    } catch (const unisono::Error&) {  // NOLINT(bugprone-empty-catch): complete() has it too
    }
  }
  {
    std::unique_lock lock(mutex_);
    const auto ended = [this] { return completed_; };
    if (!limited) {
      cv_.wait(lock, ended);
    } else if (!cv_.wait_for(lock, timeout, ended)) {
      throw c10::DistBackendError("unisono: this wait gave up after " +
                                  std::to_string(timeout.count()) +
                                  " ms; the operation goes on, and may be waited for again");
    }
  }
  if (first) {
    requests_.clear();
  }
  if (exception_ != nullptr) {
    std::rethrow_exception(exception_);
  }
  synchronize();
  return true;
}

}  // namespace unisono_torch
