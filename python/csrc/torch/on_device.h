// Collectives of one group on the tensors of a device: kernels on its streams, and Work for which
// nobody waits on the host.
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

// Returns whether kernels can access the device's memory: whether it is CUDA's, whatever PyTorch
// calls the device.
bool is_of_cuda(c10::Device device);

class OnDevice : public std::enable_shared_from_this<OnDevice> {
 public:
  // Collective: all ranks of the group make theirs. Throws unisono::Error: config and usage, on all
  // ranks alike, where kernels cannot do it.
  OnDevice(unisono::Communicator& group, c10::Device device, int limit_ms,
           std::shared_ptr<PendingOperations> pending_operations);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { close(-1); }

  c10::Device device() const { return device_; }
  // The stream of operations for which the caller's stream does not wait.
  c10::Stream own_stream() const { return own_; }

  struct Run {
    std::span<Piece> pieces;
    std::vector<at::Tensor> outputs;
    c10::Stream stream;
    std::shared_ptr<OperationRecord> record;
    std::shared_ptr<std::vector<at::Tensor>> held = nullptr;  // alive until the end
    bool is_captured = false;  // in a graph, which has no time of its own
  };
  // Puts the calls and what follows them on a stream, after what the caller's stream has; says when
  // all is done. One thread at a time. Throws unisono::Error.
  std::shared_ptr<c10::Event> run(Run run);
  // Returns the failure that has ended the group.
  std::optional<unisono::Error> failure() const;
  // Returns whether the program has already received the failure as an exception.
  bool is_told() const noexcept { return is_told_; }
  void note_told() noexcept { is_told_ = true; }
  // As DeviceGroup::set_timeout().
  void set_limit(int limit_ms);
  // False: what was put on streams is not done after this time.
  bool wait_for_all(std::chrono::milliseconds limit);
  // As DeviceGroup::close(). What had ended the group before is known afterwards, too.
  void close(int timeout_ms);

 private:
  void note_ends();

  c10::Device device_;
  c10::Stream own_;
  pid_t pid_;
  std::shared_ptr<PendingOperations> pending_operations_;
  mutable std::mutex mutex_;  // guards that the group is there, and the next
  std::unique_ptr<unisono::DeviceGroup> group_;
  mutable std::optional<unisono::Error> failure_;
  std::atomic<bool> is_told_ = false;
  std::mutex ends_mutex_;  // guards what follows
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
  // `is_captured`: it is part of a graph, and counts as ended: replays of it are not its own.
  // `held` is dropped when a stream waits for the operation, which may be before its end.
  DeviceWork(const Operation::Description& description, std::shared_ptr<OnDevice> place,
             bool is_captured, std::shared_ptr<std::vector<at::Tensor>> held);
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;
  ~DeviceWork() override { end_record(); }

  // Called once, when the host has done what it does for it.
  void follow(std::shared_ptr<c10::Event> end);

  bool isCompleted() override;
  bool isSuccess() const override { return exception() == nullptr; }
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }
  void synchronize() override;
  void blockCurrentStream() override { synchronize(); }
  // The caller's stream waits; with a limit, and for a barrier, the caller does as well.
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
  std::atomic<bool> was_right_ = false;  // it was seen to end before the group did
  std::mutex mutex_;                     // guards what follows
  std::shared_ptr<std::vector<at::Tensor>> held_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// Looks now and then. False: it is not over after the limit (none: negative). Ctrl-C ends it.
bool look_until(const std::function<bool()>& is_over, std::chrono::milliseconds limit);

// Its buffers become memory of the host: what they have is copied there when the caller's stream
// comes to it, which is waited for, and what the call makes of it is copied back afterwards.
void move_to_host(Piece& piece, std::size_t in_bytes, std::size_t out_bytes);

// Makes what follows such a piece, and waits until it is done. Any thread. On a stream that no
// group has: it must not wait for operations that wait for what this makes.
void finish_on(c10::Device device, const std::function<void()>& steps);

}  // namespace unisono_torch
