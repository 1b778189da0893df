// Streams and events of devices, whatever PyTorch calls the device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

namespace unisono_torch {

// The caller's stream of a device.
c10::Stream current_stream(c10::Device device);
// One that no group has: it waits for no operation.
c10::Stream spare_stream(c10::Device device);
// One for a group of its own.
c10::Stream stream_for_group(c10::Device device);

// Records the stream's current work as an event. Dropping the event creates no context on another
// device.
std::shared_ptr<c10::Event> event_on(c10::Stream stream);
// Nothing where it cannot be asked: its device has failed. For is_over() it is over then.
std::optional<bool> asked_whether_over(const c10::Event& event) noexcept;
bool is_over(const c10::Event& event) noexcept;

// In a graph there is nothing that the host could wait for.
void check_not_capturing(c10::Stream stream);
void wait_for(c10::Stream stream);  // refuses a stream that captures one
// Returns whether the caller's work on the device is being captured into a graph.
bool is_capturing(c10::Device device);

}  // namespace unisono_torch
