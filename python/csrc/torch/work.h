// c10d::Work of an asynchronous operation, and the thread that completes futures.
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

// Counts the operations in progress on a group, and stores the failure that ended the group.
class PendingOperations {
 public:
  // owed: other ranks need the operation, which holds for all operations except receives.
  enum class Kind : std::uint8_t { owed, own };

  // `has_failed`: the world's flag, which is set too. nullptr: there is no world yet.
  explicit PendingOperations(std::shared_ptr<std::atomic<bool>> has_failed)
      : has_failed_(std::move(has_failed)) {}
  // Switches to another world. REQUIRES: no operation is in progress.
  void renew(std::shared_ptr<std::atomic<bool>> has_failed);
  void begin(Kind kind = Kind::own);
  void end(Kind kind = Kind::own);
  // Return false if some operations have not ended after this time.
  bool wait_for_all(std::chrono::milliseconds timeout);
  bool wait_for_owed(std::chrono::milliseconds timeout);
  // Returns true if this is the first failure and there are hooks, which the caller must run before
  // reporting the failure.
  bool note(unisono::ErrorCode code);
  std::optional<unisono::ErrorCode> failure() const;

  // Hooks are called before the first failure is reported (torch.distributed's abort hooks).
  void add_hook(std::int64_t id, std::function<void()> hook);
  void remove_hook(std::int64_t id);
  void run_hooks();

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable all_done_;
  int in_progress_ = 0;
  int owed_ = 0;
  std::optional<unisono::ErrorCode> failure_;
  std::shared_ptr<std::atomic<bool>> has_failed_;
  std::map<std::int64_t, std::function<void()>> hooks_;
};

// Runs `task` on the thread that completes futures, or on another thread if that one is busy.
// `task` must not throw.
void run_elsewhere(std::function<void()> task);
// Returns false if some tasks have not ended after this time.
bool wait_for_all_elsewhere(std::chrono::milliseconds timeout);
// Runs the hooks for callers that must not wait for Python.
void run_hooks_elsewhere(const std::shared_ptr<PendingOperations>& pending_operations);

// Consecutive requests of one group, with the follow-up work after the last request.
class Operation final : public c10d::Work {
 public:
  struct Description {
    int rank = 0;
    c10d::OpType type = c10d::OpType::UNKNOWN;
    std::string title = {};  // "unisono:all_reduce"; empty if no profiler is active
    std::uint64_t sequence = 0;
    std::optional<std::vector<at::Tensor>> inputs = std::nullopt;  // for the profiler
    std::vector<at::Tensor> outputs = {};                          // value of the future
    std::vector<at::Tensor> held = {};                             // kept alive until the end
    std::function<void()> finish = nullptr;             // copies staged results to their tensors
    std::shared_ptr<OperationRecord> record = nullptr;  // nullptr: recording is off
  };
  Operation(Description description, std::shared_ptr<PendingOperations> pending_operations);

  // Called once, after all requests have started.
  void follow(std::vector<unisono::Request> requests);
  // Completes an operation without requests.
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
  pid_t pid_;  // a forked child has the object but not the operation
  at::ThreadLocalState issuer_;
  std::vector<unisono::Request> requests_;
  std::atomic<bool> claimed_ = false;  // a thread owns requests_: waits for it or drops it
  int source_ = -1;
  std::mutex future_mutex_;  // guards the members below
  bool ended_ = false;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// Result of endCoalescing(): all operations started since startCoalescing().
class Together final : public c10d::Work {
 public:
  // `title`: title in the profiler; nullptr: not shown.
  Together(int rank, const char* title, std::vector<c10::intrusive_ptr<c10d::Work>> parts)
      : Work(rank, c10d::OpType::COALESCED, title), parts_(std::move(parts)) {}
  bool isCompleted() override;
  bool isSuccess() const override { return exception() == nullptr; }
  std::exception_ptr exception() const override;  // first exception of any part
  void blockCurrentStream() override;
  bool wait(std::chrono::milliseconds timeout) override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

}  // namespace unisono_torch
