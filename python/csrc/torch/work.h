// c10d::Work of an operation that runs beside its caller, and the thread on which futures end.
#pragma once

#include <ATen/ThreadLocalState.h>
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
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
class Flights {
 public:
  // `has_failed`: of the world, whose end is remembered there too.
  explicit Flights(std::shared_ptr<std::atomic<bool>> has_failed)
      : has_failed_(std::move(has_failed)) {}
  void begin();
  void end();
  // False: some are left after this time.
  bool wait_for_all(std::chrono::milliseconds timeout);
  void note(unisono::ErrorCode code) {
    failure_ = static_cast<int>(code);
    *has_failed_ = true;
  }
  std::optional<unisono::ErrorCode> failure() const;

 private:
  std::mutex mutex_;  // guards flying_
  std::condition_variable landed_;
  int flying_ = 0;
  std::atomic<int> failure_ = -1;
  std::shared_ptr<std::atomic<bool>> has_failed_;
};

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
  Operation(Description description, std::shared_ptr<Flights> flights);

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
  static void end_future(const c10::intrusive_ptr<c10::ivalue::Future>& future,
                         const std::vector<at::Tensor>& outputs, std::exception_ptr failure);

  std::vector<at::Tensor> outputs_;
  std::vector<at::Tensor> held_;
  std::function<void()> finish_;
  std::uint64_t sequence_;
  std::shared_ptr<OperationRecord> record_;
  std::shared_ptr<Flights> flights_;
  pid_t pid_;  // a forked child has the object, but not the operation
  at::ThreadLocalState issuer_;
  std::vector<unisono::Request> requests_;
  std::atomic<bool> claimed_ = false;  // somebody owns requests_: waits for it, or drops it
  int source_ = -1;
  std::mutex future_mutex_;  // guards what follows
  bool ended_ = false;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// What endCoalescing() returns: all that was started since startCoalescing().
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
