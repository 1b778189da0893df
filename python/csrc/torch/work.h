// c10d::Work of an operation that runs beside its caller, and the thread on which futures end.
#pragma once

#include <ATen/ThreadLocalState.h>
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>
#include "flight_recorder.h"
#include "unisono/unisono.hpp"

namespace unisono_torch {

// Counts what is under way on a group, and remembers what ended it.
class PendingOperations {
 public:
  // Returns true if other ranks need this operation: true for all but receives.
  enum class Kind : std::uint8_t { owed, own };

  // `has_failed`: of the world, whose end is remembered there too. nullptr: there is none yet.
  explicit PendingOperations(std::shared_ptr<std::atomic<bool>> has_failed)
      : has_failed_(std::move(has_failed)) {}
  // Nothing is under way: the group goes on in another world.
  void renew(std::shared_ptr<std::atomic<bool>> has_failed);
  void begin(Kind kind = Kind::own);
  void end(Kind kind = Kind::own);
  // False: some are left after this time.
  bool wait_for_all(std::chrono::milliseconds timeout);
  bool wait_for_owed(std::chrono::milliseconds timeout);
  // True if this is the first failure and there are hooks: the caller runs them before it reports.
  bool note(unisono::ErrorCode code);
  std::optional<unisono::ErrorCode> failure() const;

  // Called before the first failure is reported (torch.distributed's abort hooks).
  void add_hook(std::int64_t id, std::function<void()> hook);
  void remove_hook(std::int64_t id);
  void run_hooks();

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable all_done_;
  int in_progress_ = 0;
  int owed_ = 0;
  std::optional<unisono::ErrorCode> failure_;
  std::shared_ptr<std::atomic<bool>> has_failed_;
  std::map<std::int64_t, std::function<void()>> hooks_;
};

// Runs it on the thread on which futures end, or on one more if that is busy. It must not throw.
void run_elsewhere(std::function<void()> task);
// False: some tasks have not ended after this time.
bool wait_for_all_elsewhere(std::chrono::milliseconds timeout);
// The hooks, for callers that must not wait for Python.
void run_hooks_elsewhere(const std::shared_ptr<PendingOperations>& pending_operations);

// Several requests of one group that run one after the other, and what follows the last.
class Operation final : public c10d::Work {
 public:
  struct Description {
    int rank = 0;
    c10d::OpType type = c10d::OpType::UNKNOWN;
    std::string title = {};  // "unisono:all_reduce"; empty where no profiler listens
    std::uint64_t sequence = 0;
    std::optional<std::vector<at::Tensor>> inputs = std::nullopt;  // for the profiler
    std::vector<at::Tensor> outputs = {};                          // the value of the future
    std::vector<at::Tensor> held = {};                             // alive until the end
    std::function<void()> finish = nullptr;  // copies what was staged to where it belongs
    std::shared_ptr<OperationRecord> record = nullptr;  // nullptr: nothing is recorded
  };
  Operation(Description description, std::shared_ptr<PendingOperations> pending_operations);

  // Called once, when all requests have been started.
  void follow(std::vector<unisono::Request> requests);
  // Nothing was to be done.
  void complete_now();

  bool wait(std::chrono::milliseconds timeout) override;
  std::vector<at::Tensor> result() override { return outputs_; }
  int sourceRank() const override { return source_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  void complete(const unisono::Error* error);
  void conclude(std::exception_ptr failure);
  PendingOperations::Kind kind() const {
    return opType_ == c10d::OpType::RECV || opType_ == c10d::OpType::RECVANYSOURCE
               ? PendingOperations::Kind::own
               : PendingOperations::Kind::owed;
  }
  static void end_future(const c10::intrusive_ptr<c10::ivalue::Future>& future,
                         const std::vector<at::Tensor>& outputs, std::exception_ptr failure);

  std::vector<at::Tensor> outputs_;
  std::vector<at::Tensor> held_;
  std::function<void()> finish_;
  std::uint64_t sequence_;
  std::shared_ptr<OperationRecord> record_;
  std::shared_ptr<PendingOperations> pending_operations_;
  pid_t pid_;  // a forked child has the object, but not the operation
  at::ThreadLocalState issuer_;
  std::vector<unisono::Request> requests_;
  std::atomic<bool> claimed_ = false;  // somebody owns requests_: waits for it, or drops it
  int source_ = -1;
  std::mutex future_mutex_;  // guards what follows
  bool ended_ = false;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// The result of endCoalescing(): all operations started since startCoalescing().
class Together final : public c10d::Work {
 public:
  // `title`: what the profiler shows; nullptr: nothing.
  Together(int rank, const char* title, std::vector<c10::intrusive_ptr<c10d::Work>> parts)
      : Work(rank, c10d::OpType::COALESCED, title), parts_(std::move(parts)) {}
  bool isCompleted() override;
  bool isSuccess() const override { return exception() == nullptr; }
  std::exception_ptr exception() const override;  // the first part's that has one
  void blockCurrentStream() override;
  bool wait(std::chrono::milliseconds timeout) override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

}  // namespace unisono_torch
