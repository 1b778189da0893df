#include "on_device.h"

#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/signals.h"
#include "convert.h"
#include "device/cuda_driver.h"
#include "device/residence.h"

namespace unisono_torch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookEvery = std::chrono::microseconds(50);
constexpr auto kAskDeviceEvery = std::chrono::milliseconds(100);  // interval of checks for Ctrl-C

}  // namespace

bool is_of_cuda(c10::Device device) {
  if (device.is_cuda()) {
    return true;
  }
  try {
    const at::Tensor some = at::empty({1}, at::TensorOptions().device(device));
    return unisono::device::residence_of(some.data_ptr(), device.index()).on_device;
  } catch (const unisono::Error&) {
    return true;  // no driver: creating the group reports the error on all ranks
  }
}

OnDevice::OnDevice(unisono::Communicator& group, c10::Device device, int limit_ms,
                   std::shared_ptr<PendingOperations> pending_operations)
    : device_(device),
      own_(stream_for_group(device)),
      pid_(getpid()),
      pending_operations_(std::move(pending_operations)),
      group_(std::make_unique<unisono::DeviceGroup>(
          group, unisono::DeviceOptions{.device = device.index(), .timeout_ms = limit_ms})) {}

std::shared_ptr<c10::Event> OnDevice::run(Run run) {
  const c10::DeviceGuard there(device_);
  const c10::impl::VirtualGuardImpl guard(device_.type());
  if (const c10::Stream caller = current_stream(device_); caller != run.stream) {
    event_on(caller)->block(run.stream);
    // Their memory belongs to the caller's stream, and must not be reused before this operation is
    // done.
    const auto keep = [&](const at::Tensor& tensor) {
      guard.recordDataPtrOnStream(tensor.storage().data_ptr(), run.stream);
    };
    for (const Piece& piece : run.pieces) {
      std::for_each(piece.held.begin(), piece.held.end(), keep);
    }
    std::for_each(run.outputs.begin(), run.outputs.end(), keep);
  }
  const c10::StreamGuard here(run.stream);
  for (Piece& piece : run.pieces) {
    group_->run(piece.call, run.stream.native_handle());
    for (const auto& step : piece.after) {
      step();
    }
  }
  const auto end = event_on(run.stream);
  if (run.is_captured) {
    return end;
  }
  if (run.record != nullptr) {
    run.record->finish_when([end, self = weak_from_this()] {
      const auto place = self.lock();
      return asked_whether_over(*end) == true &&
             (place == nullptr || !place->failure().has_value());
    });
  }
  const std::lock_guard lock(ends_mutex_);
  latest_ = end;
  note_ends();
  if (run.record != nullptr || run.held != nullptr) {
    under_way_.push_back({end, std::move(run.record), std::move(run.held)});
  }
  return end;
}

// Finishes records of operations that have ended; a record dropped earlier marks a failure.
// REQUIRES: ends_mutex_.
void OnDevice::note_ends() {
  while (!under_way_.empty() && is_over(*under_way_.front().end)) {
    if (under_way_.front().record != nullptr && !failure().has_value()) {
      under_way_.front().record->finish();
    }
    under_way_.pop_front();
  }
}

std::optional<unisono::Error> OnDevice::failure() const {
  const std::lock_guard lock(mutex_);
  try {
    if (group_ != nullptr && !failure_.has_value()) {
      group_->check();
    }
  } catch (const unisono::Error& error) {
    failure_ = error;
    if (pending_operations_->note(error.code())) {
      run_hooks_elsewhere(pending_operations_);
    }
  }
  return failure_;
}

void OnDevice::set_limit(int limit_ms) {
  const std::lock_guard lock(mutex_);
  if (group_ != nullptr) {
    group_->set_timeout(limit_ms);
  }
}

bool OnDevice::wait_for_all(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  std::shared_ptr<c10::Event> latest;
  {
    const std::lock_guard lock(ends_mutex_);
    latest = latest_;
  }
  while (latest != nullptr && !is_over(*latest) && !failure().has_value()) {
    if (Clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  const std::lock_guard lock(ends_mutex_);
  note_ends();
  return true;
}

void OnDevice::close(int timeout_ms) {
  if (getpid() == pid_) {
    failure();
  }
  std::unique_ptr<unisono::DeviceGroup> closing;
  {
    const std::lock_guard lock(mutex_);
    closing.swap(group_);
  }
  if (getpid() != pid_) {
    static_cast<void>(closing.release());  // a forked child has the object but not the group
  } else if (closing != nullptr) {
    closing->close(timeout_ms);
  }
}

DeviceWork::DeviceWork(const Operation::Description& description, std::shared_ptr<OnDevice> place,
                       bool is_captured, std::shared_ptr<std::vector<at::Tensor>> held)
    : Work(description.rank, description.type,
           description.title.empty() ? nullptr : description.title.c_str(), description.inputs),
      outputs_(description.outputs),
      sequence_(description.sequence),
      place_(std::move(place)),
      is_captured_(is_captured),
      held_(std::move(held)) {}

void DeviceWork::follow(std::shared_ptr<c10::Event> end) {
  end_ = std::move(end);
  end_record();
}

// Ends the profiler's record when the host's part of the operation has ended or failed.
void DeviceWork::end_record() {
  if (recordFunctionEndCallback_) {
    std::exchange(recordFunctionEndCallback_, nullptr)();
  }
}

bool DeviceWork::isCompleted() {
  if (was_right_ || is_captured_) {
    return true;
  }
  if (place_->failure().has_value()) {
    return true;
  }
  const std::optional<bool> over = asked_whether_over(*end_);
  if (over == false) {
    return false;
  }
  // Kernels also end if the group ends or the device fails.
  was_right_ = over.has_value() && !place_->failure().has_value();
  return true;
}

std::exception_ptr DeviceWork::exception() const {
  if (was_right_) {
    return nullptr;
  }
  const auto failure = place_->failure();
  return failure.has_value() ? to_torch(*failure) : nullptr;
}

void DeviceWork::throw_if_failed() const {
  if (const std::exception_ptr failure = exception()) {
    place_->note_told();
    std::rethrow_exception(failure);
  }
}

void DeviceWork::synchronize() {
  const c10::DeviceGuard there(place_->device());
  end_->block(current_stream(place_->device()));
  // Memory freed from here on is reused only after this wait.
  std::vector<at::Tensor> done;
  const std::lock_guard lock(mutex_);
  if (held_ != nullptr) {
    done.swap(*held_);
  }
}

bool look_until(const std::function<bool()>& is_over, std::chrono::milliseconds limit) {
  const auto begin = Clock::now();
  for (auto ask = begin; !is_over(); std::this_thread::sleep_for(kLookEvery)) {
    if (limit.count() >= 0 && Clock::now() - begin >= limit) {
      return false;
    }
    if (Clock::now() >= ask) {
      ask += kAskDeviceEvery;
      unisono_signals::throw_if_interrupted();
    }
  }
  return true;
}

bool DeviceWork::wait(std::chrono::milliseconds timeout) {
  throw_if_failed();
  synchronize();
  const bool is_limited = timeout > kNoTimeout;
  if (!is_limited && opType_ != c10d::OpType::BARRIER) {
    return true;
  }
  if (!look_until([this] { return isCompleted(); },
                  is_limited ? timeout : std::chrono::milliseconds(-1))) {
    throw c10::DistBackendError("unisono: Timed out waiting: this wait gave up after " +
                                std::to_string(timeout.count()) +
                                " ms; the operation continues, and wait() may be called again");
  }
  throw_if_failed();
  if (!was_right_ && !is_captured_) {
    static_cast<void>(end_->query());  // throws the reason why it cannot be queried
  }
  return true;
}

// Returns a completed future. Reading its value makes the reader's current stream wait for the
// device.
c10::intrusive_ptr<c10::ivalue::Future> DeviceWork::getFuture() {
  const std::lock_guard lock(mutex_);
  if (future_ == nullptr) {
    future_ = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()), std::vector{place_->device()});
    const c10::StreamGuard there(place_->own_stream());
    future_->markCompleted(c10::IValue(outputs_));
  }
  return future_;
}

void move_to_host(Piece& piece, std::size_t in_bytes, std::size_t out_bytes) {
  const c10::Device device = piece.device();
  wait_for(current_stream(device));
  unisono::Call& call = piece.call;
  const bool in_place = call.in == call.out;
  if (in_place) {
    in_bytes = out_bytes = std::max(in_bytes, out_bytes);
  }
  void* const out = call.out;
  if (call.in != nullptr) {
    const at::Tensor room = bytes_at(call.in, in_bytes, device).cpu();
    piece.held.push_back(room);
    call.in = room.data_ptr();
  }
  if (out == nullptr) {
    return;
  }
  at::Tensor room = piece.held.back();
  if (!in_place) {
    room = at::empty({static_cast<std::int64_t>(out_bytes)}, at::kByte);
    piece.held.push_back(room);
  }
  call.out = room.data_ptr();
  piece.after.insert(piece.after.begin(), [room, out, out_bytes, device] {
    bytes_at(out, out_bytes, device).copy_(room);
  });
}

void finish_on(c10::Device device, const std::function<void()>& steps) {
  const c10::Stream stream = spare_stream(device);
  const c10::StreamGuard here(stream);
  const unisono::device::WhileOthersCapture relaxed;
  steps();
  wait_for(stream);
}

}  // namespace unisono_torch
