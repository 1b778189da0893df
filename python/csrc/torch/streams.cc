#include "streams.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "device/cuda_driver.h"

namespace unisono_torch {
namespace {

c10::impl::VirtualGuardImpl guard_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

// To destroy an event, PyTorch sets the event's device and then the previous device, which would
// create a context on the previous device.
void drop(const c10::Event* event, c10::Device device) noexcept {
  try {
    const c10::DeviceGuard there(device);
    delete event;
  } catch (...) {  // NOLINT(bugprone-empty-catch): the device is gone at process end
  }
}

}  // namespace

c10::Stream current_stream(c10::Device device) {
  return guard_of(device).getStream(device);
}

c10::Stream spare_stream(c10::Device device) {
  // The groups' own streams are from the other pool.
  return guard_of(device).getStreamFromGlobalPool(device, true);
}

c10::Stream stream_for_group(c10::Device device) {
  return guard_of(device).getStreamFromGlobalPool(device);
}

std::shared_ptr<c10::Event> event_on(c10::Stream stream) {
  const c10::Device device = stream.device();
  const c10::DeviceGuard there(device);
  std::shared_ptr<c10::Event> event(new c10::Event(stream.device_type()),
                                    [device](const c10::Event* one) { drop(one, device); });
  event->record(stream);
  return event;
}

std::optional<bool> asked_whether_over(const c10::Event& event) noexcept {
  const unisono::device::WhileOthersCapture relaxed;
  try {
    return event.query();
  } catch (...) {
    return std::nullopt;
  }
}

bool is_over(const c10::Event& event) noexcept {
  return asked_whether_over(event).value_or(true);
}

void check_not_capturing(c10::Stream stream) {
  TORCH_CHECK_VALUE(!guard_of(stream.device()).isStreamCapturing(stream),
                    "unisono: the host would wait for a stream that captures a graph; barrier(), "
                    "send, recv and operations through host memory cannot be part of a graph");
}

void wait_for(c10::Stream stream) {
  check_not_capturing(stream);
  guard_of(stream.device()).synchronizeStream(stream);
}

bool is_capturing(c10::Device device) {
  return guard_of(device).isStreamCapturing(current_stream(device));
}

}  // namespace unisono_torch
