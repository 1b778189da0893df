#include "driver.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace fake_device {
namespace {

constexpr int kStreams = 8;
constexpr int kLatestUs = 500;  // the longest delay of work
constexpr int kOneLateIn = 8;
constexpr int kNotReady = 600;

void* library() {
  static void* const opened = ::dlopen(std::getenv("UNISONO_CUDA"), RTLD_NOW);
  TORCH_CHECK(opened != nullptr, "UNISONO_CUDA does not name the driver without a GPU");
  return opened;
}

template <class... Arguments>
int result_of(const char* name, Arguments... arguments) {
  return reinterpret_cast<int (*)(Arguments...)>(::dlsym(library(), name))(arguments...);
}

template <class... Arguments>
bool asks(const char* name, Arguments... arguments) {
  return result_of(name, arguments...) == 0;
}

template <class... Arguments>
void call(const char* name, Arguments... arguments) {
  TORCH_CHECK(asks(name, arguments...), name, " failed");
}

void* context_of(c10::DeviceIndex device) {
  static std::mutex mutex;  // guards the next
  static auto* const contexts = new std::array<void*, kDevices>();
  const std::lock_guard lock(mutex);
  void*& context = contexts->at(static_cast<std::size_t>(device));
  if (context == nullptr) {
    int handle = 0;
    call("cuDeviceGet", &handle, static_cast<int>(device));
    call("cuDevicePrimaryCtxRetain", &context, handle);
  }
  return context;
}

// The thread has the device's context.
class Here {
 public:
  explicit Here(c10::DeviceIndex device) {
    call("cuCtxGetCurrent", &before_);
    call("cuCtxSetCurrent", context_of(device));
  }
  explicit Here(c10::Stream stream) : Here(stream.device_index()) {}
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;
  ~Here() { asks("cuCtxSetCurrent", before_); }

 private:
  void* before_ = nullptr;
};

c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kFake, device), id);
}

thread_local c10::DeviceIndex thread_device = 0;

c10::StreamId& current_of(c10::DeviceIndex device) {
  thread_local std::array<c10::StreamId, kDevices> current = {};
  return current.at(static_cast<std::size_t>(device));
}

c10::DeviceIndex known(c10::DeviceIndex device) {
  return device < 0 ? thread_device : device;
}

void run_again(void* data) {
  thread_local std::minstd_rand numbers(std::random_device{}());
  if (numbers() % kOneLateIn == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(numbers() % kLatestUs));
  }
  (*static_cast<std::function<void()>*>(data))();
}

void run_once(void* data) {
  const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(data));
  run_again(data);
}

}  // namespace

c10::DeviceIndex current_device() {
  return thread_device;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex device) {
  TORCH_CHECK(device < kDevices, "there is no device ", static_cast<int>(device));
  return std::exchange(thread_device, known(device));
}

c10::Stream default_stream(c10::DeviceIndex device) {
  return stream_of(known(device), 0);
}

c10::Stream pooled_stream(c10::DeviceIndex device) {
  static std::atomic<int> next = 0;
  return stream_of(known(device), 1 + next++ % kStreams);
}

c10::Stream current_stream(c10::DeviceIndex device) {
  return stream_of(known(device), current_of(known(device)));
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::DeviceIndex device = stream.device_index();
  return stream_of(device, std::exchange(current_of(device), stream.id()));
}

void* handle_of(c10::Stream stream) {
  static std::mutex mutex;  // guards the next
  static auto* const handles = new std::array<std::array<void*, kStreams + 1>, kDevices>();
  const std::lock_guard lock(mutex);
  void*& handle = handles->at(static_cast<std::size_t>(stream.device_index()))
                      .at(static_cast<std::size_t>(stream.id()));
  if (stream.id() != 0 && handle == nullptr) {
    const Here here(stream);
    call("cuStreamCreate", &handle, 1U);
  }
  return handle;
}

void enqueue(c10::Stream stream, std::function<void()> work) {
  const Here here(stream);
  call("cuLaunchHostFunc", handle_of(stream), is_capturing(stream) ? &run_again : &run_once,
       static_cast<void*>(new std::function<void()>(std::move(work))));
}

bool is_done(c10::Stream stream) {
  const Here here(stream);
  return asks("cuStreamQuery", handle_of(stream));
}

bool is_capturing(c10::Stream stream) {
  const Here here(stream);
  int capturing = 0;
  call("cuStreamIsCapturing", handle_of(stream), &capturing);
  return capturing != 0;
}

void synchronize(c10::Stream stream) {
  const Here here(stream);
  call("cuStreamSynchronize", handle_of(stream));
}

void record(void** event, c10::Stream stream) {
  const Here here(stream);
  if (*event == nullptr) {
    call("cuEventCreate", event, 2U);
  }
  call("cuEventRecord", *event, handle_of(stream));
}

void block(void* event, c10::Stream stream) {
  if (event != nullptr) {
    const Here here(stream);
    call("cuStreamWaitEvent", handle_of(stream), event, 0U);
  }
}

bool is_over(void* event) {
  if (event == nullptr) {
    return true;
  }
  const int said = result_of("cuEventQuery", event);
  TORCH_CHECK(said == 0 || said == kNotReady, "cuEventQuery failed: ", said);
  return said == 0;
}

void destroy(void* event) {
  call("cuEventDestroy_v2", event);
}

void* allocate(c10::DeviceIndex device, std::size_t bytes) {
  const Here here(device);
  const Relaxed relaxed;
  std::uint64_t place = 0;
  call("cuMemAlloc_v2", &place, bytes);
  return reinterpret_cast<void*>(place);
}

c10::DeviceIndex device_of(const void* memory) {
  constexpr int kDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_...
  int device = 0;
  void* value = &device;
  call("cuPointerGetAttributes", 1U, &kDeviceOrdinal, &value,
       reinterpret_cast<std::uint64_t>(memory));
  return static_cast<c10::DeviceIndex>(std::max(device, 0));
}

void Relaxed::exchange() {
  call("cuThreadExchangeStreamCaptureMode", &mode_);
}

}  // namespace fake_device

// Graphs of the current stream, for tests. Captures use the global mode, as PyTorch's do.
extern "C" {

void fake_begin_capture() {
  const c10::Stream stream = fake_device::current_stream(-1);
  const fake_device::Here here(stream);
  fake_device::call("cuStreamBeginCapture_v2", fake_device::handle_of(stream), 0);
}

// Returns nullptr if the captured calls cannot be in a graph.
void* fake_end_capture() {
  const c10::Stream stream = fake_device::current_stream(-1);
  const fake_device::Here here(stream);
  void* graph = nullptr;
  fake_device::asks("cuStreamEndCapture", fake_device::handle_of(stream), &graph);
  return graph;
}

void fake_replay(void* graph) {
  const c10::Stream stream = fake_device::current_stream(-1);
  const fake_device::Here here(stream);
  fake_device::call("cuGraphLaunch", graph, fake_device::handle_of(stream));
}
}
