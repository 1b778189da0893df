// Streams and events of devices, whatever PyTorch calls the device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

namespace unisono_torch {

// Returns the caller's stream of a device.
c10::Stream current_stream(c10::Device device);
// Returns a stream that no group uses, so it waits for no operation.
c10::Stream spare_stream(c10::Device device);
// Returns a separate stream for a group.
c10::Stream stream_for_group(c10::Device device);

// Records the stream's current work as an event. Dropping the event does not create a context on
// another device.
std::shared_ptr<c10::Event> event_on(c10::Stream stream);
// Returns nullopt if the event cannot be queried because its device has failed. is_over() returns
// true then.
std::optional<bool> asked_whether_over(const c10::Event& event) noexcept;
bool is_over(const c10::Event& event) noexcept;

// Throws if the stream is capturing a graph, for which the host cannot wait.
void check_not_capturing(c10::Stream stream);
void wait_for(c10::Stream stream);  // throws if the stream is capturing
// Returns true if the caller's work on the device is being captured into a graph.
bool is_capturing(c10::Device device);

}  // namespace unisono_torch
