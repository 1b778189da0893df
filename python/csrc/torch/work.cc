#include "work.h"

#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "common/signals.h"
#include "convert.h"
#include "device/cuda_driver.h"
#include "streams.h"

namespace unisono_torch {
namespace {

// Completes futures on a separate thread. Callbacks of a future may be Python functions, start
// operations, and even wait for them. Therefore futures never complete on the progress thread, and
// more threads are started when some are stuck.
//
// While tasks are queued, some thread will take the next task: a thread that waits for tasks, or a
// guard, which gives the others some time before it takes a task itself.
class FutureCompleter {
 public:
  // Never destroyed: its threads may outlive main(). A forked child has its own, because threads
  // do not survive fork().
  static FutureCompleter& of_process() {
    static auto* completer = new FutureCompleter;
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { completer = new FutureCompleter; });
    static_cast<void>(registered);
    return *completer;
  }
  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    work_.notify_one();
    watch();
  }
  // Returns false if some tasks have not ended after this time.
  bool wait_for_all(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return drained_.wait_for(lock, timeout, [this] { return tasks_.empty() && running_ == 0; });
  }

 private:
  // REQUIRES: mutex_.
  void watch() {
    if (!tasks_.empty() && waiting_ == 0 && !guarded_) {
      guarded_ = true;
      // The first thread does not need to wait for others.
      const auto patience = threads_ == 0 ? std::chrono::milliseconds(0) : kPatience;
      ++threads_;
      std::thread([this, patience] { run(patience); }).detach();
    }
  }

  void run(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    drained_.wait_for(lock, patience, [this] { return tasks_.empty(); });
    guarded_ = false;
    for (;;) {
      ++waiting_;
      const bool some =
          work_.wait_for(lock, std::chrono::seconds(10), [this] { return !tasks_.empty(); });
      --waiting_;
      if (!some && threads_ > 1) {
        --threads_;
        return;
      }
      if (!some) {
        continue;
      }
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      if (tasks_.empty()) {
        drained_.notify_all();
      }
      watch();
      ++running_;
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      if (--running_ == 0) {
        drained_.notify_all();
      }
    }
  }

  // Most callbacks have ended after this time.
  static constexpr auto kPatience = std::chrono::milliseconds(2);

  std::mutex mutex_;  // guards the members below
  std::condition_variable work_;
  std::condition_variable drained_;
  std::deque<std::function<void()>> tasks_;
  std::size_t threads_ = 0;
  std::size_t waiting_ = 0;  // threads that wait for tasks
  std::size_t running_ = 0;  // running tasks
  bool guarded_ = false;     // one thread is a guard
};

}  // namespace

void PendingOperations::renew(std::shared_ptr<std::atomic<bool>> has_failed) {
  const std::lock_guard lock(mutex_);
  failure_.reset();
  has_failed_ = std::move(has_failed);
}

void PendingOperations::begin(Kind kind) {
  const std::lock_guard lock(mutex_);
  ++in_progress_;
  owed_ += kind == Kind::owed ? 1 : 0;
}

void PendingOperations::end(Kind kind) {
  const std::lock_guard lock(mutex_);
  --in_progress_;
  owed_ -= kind == Kind::owed ? 1 : 0;
  all_done_.notify_all();
}

bool PendingOperations::wait_for_all(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return all_done_.wait_for(lock, timeout, [this] { return in_progress_ == 0; });
}

bool PendingOperations::wait_for_owed(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return all_done_.wait_for(lock, timeout, [this] { return owed_ == 0; });
}

bool PendingOperations::note(unisono::ErrorCode code) {
  const std::lock_guard lock(mutex_);
  const bool is_first = !failure_.has_value();
  failure_ = code;
  if (has_failed_ != nullptr) {
    *has_failed_ = true;
  }
  return is_first && !hooks_.empty();
}

std::optional<unisono::ErrorCode> PendingOperations::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void PendingOperations::add_hook(std::int64_t id, std::function<void()> hook) {
  const std::lock_guard lock(mutex_);
  hooks_[id] = std::move(hook);
}

void PendingOperations::remove_hook(std::int64_t id) {
  std::function<void()> removed;  // destroyed without the lock: may be a Python object
  const std::lock_guard lock(mutex_);
  if (const auto found = hooks_.find(id); found != hooks_.end()) {
    removed = std::move(found->second);
    hooks_.erase(found);
  }
}

void PendingOperations::run_hooks() {
  std::map<std::int64_t, std::function<void()>> hooks;
  {
    const std::lock_guard lock(mutex_);
    hooks = hooks_;
  }
  for (const auto& [id, hook] : hooks) {
    try {
      hook();
    } catch (const std::exception& error) {
      TORCH_WARN("unisono: abort hook ", id, " failed: ", error.what());
    }
  }
}

void run_elsewhere(std::function<void()> task) {
  FutureCompleter::of_process().post(std::move(task));
}

bool wait_for_all_elsewhere(std::chrono::milliseconds timeout) {
  return FutureCompleter::of_process().wait_for_all(timeout);
}

void run_hooks_elsewhere(const std::shared_ptr<PendingOperations>& pending_operations) {
  FutureCompleter::of_process().post([pending_operations] { pending_operations->run_hooks(); });
}

Operation::Operation(Description description, std::shared_ptr<PendingOperations> pending_operations)
    : Work(description.rank, description.type,
           description.title.empty() ? nullptr : description.title.c_str(), description.inputs),
      outputs_(std::move(description.outputs)),
      held_(std::move(description.held)),
      finish_(std::move(description.finish)),
      sequence_(description.sequence),
      record_(std::move(description.record)),
      pending_operations_(std::move(pending_operations)),
      pid_(getpid()) {}

void Operation::complete_now() {
  pending_operations_->begin();
  complete(nullptr);
  pending_operations_->end();
}

void Operation::follow(std::vector<unisono::Request> requests) {
  requests_ = std::move(requests);
  pending_operations_->begin(kind());
  auto self = c10::intrusive_ptr<Operation>::reclaim_copy(this);
  // The group counts this operation until the thread that ends it has finished with it.
  requests_.back().on_done([self, pending_operations = pending_operations_,
                            kind = kind()](const unisono::Error* error) mutable {
    self->complete(error);
    self.reset();
    pending_operations->end(kind);
  });
}

void Operation::complete(const unisono::Error* error) {
  std::exception_ptr failure;
  bool has_hooks = false;
  if (error != nullptr) {
    has_hooks = pending_operations_->note(error->code());
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
  if (record_ != nullptr && failure == nullptr) {
    record_->finish();
  }
  record_.reset();
  finish_ = nullptr;
  held_.clear();
  if (!claimed_.exchange(true)) {
    requests_.clear();
  }
  if (!has_hooks) {
    conclude(std::move(failure));
    return;
  }
  // Hooks may be Python functions and may use this world, so they do not run on its progress
  // thread.
  FutureCompleter::of_process().post(
      [self = c10::intrusive_ptr<Operation>::reclaim_copy(this), failure = std::move(failure)] {
        self->pending_operations_->run_hooks();
        self->conclude(failure);
      });
}

void Operation::conclude(std::exception_ptr failure) {
  finish(failure);
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(future_mutex_);
    ended_ = true;
    future = future_;
  }
  if (future != nullptr) {
    FutureCompleter::of_process().post([future, outputs = outputs_, failure, issuer = issuer_] {
      const at::ThreadLocalStateGuard guard(issuer);
      end_future(future, outputs, failure);
    });
  }
}

namespace {

// Returns the devices of the tensors that are not on the CPU.
std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    const c10::Device device = tensor.device();
    if (!device.is_cpu() && std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
  }
  return devices;
}

c10::intrusive_ptr<c10::ivalue::Future> future_of(const std::vector<at::Tensor>& tensors) {
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                  devices_of(tensors));
}

// Completes the future. `steps` enqueues the remaining work on streams for which the future's
// readers wait. If `steps` throws, its exception becomes the future's error.
template <typename Steps>
void end_with(c10::ivalue::Future& future, const std::vector<at::Tensor>& tensors,
              const Steps& steps) {
  const unisono::device::WhileOthersCapture relaxed;
  try {
    const std::vector<c10::Device> devices = devices_of(tensors);
    std::vector<c10::Stream> streams;
    for (const c10::Device device : devices) {
      streams.push_back(spare_stream(device));
    }
    // Callbacks start on this device.
    const c10::OptionalDeviceGuard there(devices.empty() ? std::nullopt
                                                         : std::optional(devices.front()));
    const c10::MultiStreamGuard here(streams);
    steps();
    future.markCompleted(c10::IValue(tensors));
  } catch (...) {
    future.setErrorIfNeeded(std::current_exception());
  }
}

}  // namespace

void Operation::end_future(const c10::intrusive_ptr<c10::ivalue::Future>& future,
                           const std::vector<at::Tensor>& outputs, std::exception_ptr failure) {
  if (failure != nullptr) {
    future->setError(std::move(failure));
  } else {
    end_with(*future, outputs, [] {});
  }
}

c10::intrusive_ptr<c10::ivalue::Future> Operation::getFuture() {
  bool ended = false;
  {
    const std::lock_guard lock(future_mutex_);
    if (future_ != nullptr) {
      return future_;
    }
    future_ = future_of(outputs_);
    ended = ended_;
  }
  if (ended) {
    end_future(future_, outputs_, exception());
  }
  return future_;
}

// The first waiting thread drives the operation itself. A wait with its own limit leaves that to
// the progress thread, because giving up must not end the operation.
bool Operation::wait(std::chrono::milliseconds timeout) {
  if (getpid() != pid_ && !isCompleted()) {
    throw c10::DistBackendError(
        "unisono: this process was forked from the one that began the operation, and cannot wait "
        "for it; make separate process groups in the child");
  }
  const bool limited = timeout > kNoTimeout;
  const bool first = !limited && !claimed_.exchange(true);
  if (first) {
    try {
      requests_.back().wait();
    } catch (const unisono::Error&) {  // NOLINT(bugprone-empty-catch): complete() has it too
    }
  }
  {
    // Another thread drives the operation, so Ctrl-C ends only this wait.
    std::unique_lock lock(mutex_);
    const auto ended = [this] { return completed_; };
    const auto end = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      const auto ask = std::chrono::steady_clock::now() + unisono_signals::kAskEvery;
      if (cv_.wait_until(lock, limited ? std::min(end, ask) : ask, ended)) {
        break;
      }
      if (limited && std::chrono::steady_clock::now() >= end) {
        throw c10::DistBackendError("unisono: Timed out waiting: this wait gave up after " +
                                    std::to_string(timeout.count()) +
                                    " ms; the operation continues, and wait() may be called again");
      }
      lock.unlock();
      unisono_signals::throw_if_interrupted();
      lock.lock();
    }
  }
  if (first) {
    requests_.clear();
  }
  if (exception_ != nullptr) {
    unisono_signals::throw_if_interrupted();
    std::rethrow_exception(exception_);
  }
  synchronize();
  return true;
}

bool Together::wait(std::chrono::milliseconds timeout) {
  for (const auto& part : parts_) {
    part->wait(timeout);
  }
  return true;
}

void Together::blockCurrentStream() {
  for (const auto& part : parts_) {
    part->blockCurrentStream();
  }
}

bool Together::isCompleted() {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->isCompleted(); });
}

std::exception_ptr Together::exception() const {
  for (const auto& part : parts_) {
    if (auto failure = part->exception(); failure != nullptr) {
      return failure;
    }
  }
  return nullptr;
}

std::vector<at::Tensor> Together::result() {
  std::vector<at::Tensor> all;
  for (const auto& part : parts_) {
    const auto some = part->result();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

c10::intrusive_ptr<c10::ivalue::Future> Together::getFuture() {
  using Future = c10::ivalue::Future;
  const auto outputs = result();
  const auto type = c10::FutureType::create(c10::ListType::create(c10::TensorType::get()));
  c10::List<c10::intrusive_ptr<Future>> parts(type);
  for (const auto& part : parts_) {
    parts.push_back(part->getFuture());
  }
  auto all = future_of(outputs);
  c10::collectAll(parts)->addCallback([all, parts, outputs](Future& ended) {
    if (ended.hasError()) {
      all->setError(ended.exception_ptr());
      return;
    }
    end_with(*all, outputs, [&] {
      for (const c10::intrusive_ptr<Future>& part : parts) {
        part->wait();  // they have ended, so streams wait, not this thread
      }
    });
  });
  return all;
}

}  // namespace unisono_torch
