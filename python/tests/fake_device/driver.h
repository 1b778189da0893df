// The driver without a GPU (src/device/testing_cuda.cc) as the fake device uses it.
#pragma once

#include <c10/core/Stream.h>

#include <functional>

namespace fake_device {

inline constexpr c10::DeviceType kFake = c10::DeviceType::PrivateUse1;

c10::Stream default_stream();
c10::Stream pooled_stream();
c10::Stream current_stream();
c10::Stream exchange_stream(c10::Stream stream);
void* handle_of(c10::Stream stream);

// The work is done some time later, after what the stream has already.
void enqueue(c10::Stream stream, std::function<void()> work);
bool is_done(c10::Stream stream);
void synchronize(c10::Stream stream);

void record(void** event, c10::Stream stream);
void block(void* event, c10::Stream stream);
bool is_over(void* event);
void destroy(void* event);

void* allocate(std::size_t bytes);

}  // namespace fake_device
