// Collectives of one group on device tensors: kernels on streams, and Work objects for which no
// host thread waits.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>
#include "unisono/device.hpp"

#include "pieces.h"
#include "streams.h"
#include "work.h"

namespace unisono_torch {

// Returns true if kernels can access the device's memory, that is, if it is CUDA memory, whatever
// PyTorch calls the device.
bool is_of_cuda(c10::Device device);

class OnDevice : public std::enable_shared_from_this<OnDevice> {
 public:
  // Collective over the group. Throws unisono::Error (config or usage) on all ranks if kernels
  // cannot be used.
  OnDevice(unisono::Communicator& group, c10::Device device, int limit_ms,
           std::shared_ptr<PendingOperations> pending_operations);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { close(-1); }

  c10::Device device() const { return device_; }
  // Returns the stream for operations that the caller's stream does not wait for.
  c10::Stream own_stream() const { return own_; }

  struct Run {
    std::span<Piece> pieces;
    std::vector<at::Tensor> outputs;
    c10::Stream stream;
    std::shared_ptr<OperationRecord> record;
    std::shared_ptr<std::vector<at::Tensor>> held = nullptr;  // kept alive until the end
    bool is_captured = false;  // part of a graph, so it has no duration
  };
  // Enqueues the calls and their follow-up work on a stream, after the work of the caller's stream.
  // Returns an event that marks the end. One thread at a time. Throws unisono::Error.
  std::shared_ptr<c10::Event> run(Run run);
  // Returns the failure that has ended the group.
  std::optional<unisono::Error> failure() const;
  // Returns true if the program has already received the failure as an exception.
  bool is_told() const noexcept { return is_told_; }
  void note_told() noexcept { is_told_ = true; }
  // Like DeviceGroup::set_timeout().
  void set_limit(int limit_ms);
  // Waits for all work on streams; returns false if it is not done after this time.
  bool wait_for_all(std::chrono::milliseconds limit);
  // Like DeviceGroup::close(). failure() still returns an earlier failure afterwards.
  void close(int timeout_ms);

 private:
  void note_ends();

  c10::Device device_;
  c10::Stream own_;
  pid_t pid_;
  std::shared_ptr<PendingOperations> pending_operations_;
  mutable std::mutex mutex_;  // guards the group's lifetime, and the next member
  std::unique_ptr<unisono::DeviceGroup> group_;
  mutable std::optional<unisono::Error> failure_;
  std::atomic<bool> is_told_ = false;
  std::mutex ends_mutex_;  // guards the members below
  std::shared_ptr<c10::Event> latest_;
  struct UnderWay {
    std::shared_ptr<c10::Event> end;
    std::shared_ptr<OperationRecord> record;
    std::shared_ptr<std::vector<at::Tensor>> held;
  };
  std::deque<UnderWay> under_way_;
};

class DeviceWork final : public c10d::Work {
 public:
  // `is_captured`: the operation is part of a graph and counts as ended; replays of the graph are
  // not tracked. `held` is released when a stream waits for the operation, possibly before the
  // operation ends.
  DeviceWork(const Operation::Description& description, std::shared_ptr<OnDevice> place,
             bool is_captured, std::shared_ptr<std::vector<at::Tensor>> held);
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;
  ~DeviceWork() override { end_record(); }

  // Called once, after the host's part of the operation.
  void follow(std::shared_ptr<c10::Event> end);

  bool isCompleted() override;
  bool isSuccess() const override { return exception() == nullptr; }
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }
  void synchronize() override;
  void blockCurrentStream() override { synchronize(); }
  // Makes the caller's stream wait. With a limit, or for a barrier, the calling thread waits too.
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  void throw_if_failed() const;
  void end_record();

  std::vector<at::Tensor> outputs_;
  std::uint64_t sequence_;
  std::shared_ptr<OnDevice> place_;
  bool is_captured_;
  std::shared_ptr<c10::Event> end_;
  std::atomic<bool> was_right_ = false;  // it ended successfully before the group ended
  std::mutex mutex_;                     // guards the members below
  std::shared_ptr<std::vector<at::Tensor>> held_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// Polls until `is_over` returns true. Returns false if the limit has passed (negative: no limit).
// Ctrl-C interrupts it.
bool look_until(const std::function<bool()>& is_over, std::chrono::milliseconds limit);

// Moves a call's buffers to host memory. Copies inputs when the caller's stream reaches this point,
// for which the host waits; copies results back afterwards.
void move_to_host(Piece& piece, std::size_t in_bytes, std::size_t out_bytes);

// Runs the follow-up work of such a piece and waits for it. May be called on any thread. Uses a
// stream that no group uses, so that it does not wait for operations that wait for this result.
void finish_on(c10::Device device, const std::function<void()>& steps);

}  // namespace unisono_torch
