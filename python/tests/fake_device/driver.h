// The driver without a GPU (src/device/testing_cuda.cc) as the fake device uses it.
#pragma once

#include <c10/core/Stream.h>

#include <functional>

namespace fake_device {

inline constexpr c10::DeviceType kFake = c10::DeviceType::PrivateUse1;
inline constexpr c10::DeviceIndex kDevices = 2;

// Returns the calling thread's device.
c10::DeviceIndex current_device();
c10::DeviceIndex exchange_device(c10::DeviceIndex device);

c10::Stream default_stream(c10::DeviceIndex device);
c10::Stream pooled_stream(c10::DeviceIndex device);
c10::Stream current_stream(c10::DeviceIndex device);
// Makes the stream the current one of its device.
c10::Stream exchange_stream(c10::Stream stream);
void* handle_of(c10::Stream stream);

// The work is done some time later, after the work that the stream already has.
void enqueue(c10::Stream stream, std::function<void()> work);
bool is_done(c10::Stream stream);
bool is_capturing(c10::Stream stream);
void synchronize(c10::Stream stream);

void record(void** event, c10::Stream stream);
void block(void* event, c10::Stream stream);
bool is_over(void* event);
void destroy(void* event);

void* allocate(c10::DeviceIndex device, std::size_t bytes);
c10::DeviceIndex device_of(const void* memory);

// Allows the thread calls that a capture forbids, as PyTorch's allocator does.
class Relaxed {
 public:
  Relaxed() { exchange(); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;
  ~Relaxed() { exchange(); }

 private:
  void exchange();

  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
};

}  // namespace fake_device
