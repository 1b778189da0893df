#include "driver.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

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
constexpr int kLatestUs = 500;  // how late work may be
constexpr int kOneLateIn = 8;

void* library() {
  static void* const opened = ::dlopen(std::getenv("UNISONO_CUDA"), RTLD_NOW);
  TORCH_CHECK(opened != nullptr, "UNISONO_CUDA does not name the driver without a GPU");
  return opened;
}

template <class... Arguments>
bool asks(const char* name, Arguments... arguments) {
  return reinterpret_cast<int (*)(Arguments...)>(::dlsym(library(), name))(arguments...) == 0;
}

template <class... Arguments>
void call(const char* name, Arguments... arguments) {
  TORCH_CHECK(asks(name, arguments...), name, " failed");
}

c10::Stream stream_of(c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kFake, 0), id);
}

thread_local c10::StreamId current = 0;

void run(void* data) {
  thread_local std::minstd_rand numbers(std::random_device{}());
  if (numbers() % kOneLateIn == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(numbers() % kLatestUs));
  }
  const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(data));
  (*work)();
}

}  // namespace

c10::Stream default_stream() {
  return stream_of(0);
}

c10::Stream pooled_stream() {
  static std::atomic<int> next = 0;
  return stream_of(1 + next++ % kStreams);
}

c10::Stream current_stream() {
  return stream_of(current);
}

c10::Stream exchange_stream(c10::Stream stream) {
  return stream_of(std::exchange(current, stream.id()));
}

void* handle_of(c10::Stream stream) {
  static std::mutex mutex;  // guards the next
  static auto* const handles = new std::array<void*, kStreams + 1>();
  const std::lock_guard lock(mutex);
  void*& handle = handles->at(static_cast<std::size_t>(stream.id()));
  if (stream.id() != 0 && handle == nullptr) {
    call("cuStreamCreate", &handle, 1U);
  }
  return handle;
}

void enqueue(c10::Stream stream, std::function<void()> work) {
  call("cuLaunchHostFunc", handle_of(stream), &run,
       static_cast<void*>(new std::function<void()>(std::move(work))));
}

bool is_done(c10::Stream stream) {
  return asks("cuStreamQuery", handle_of(stream));
}

void synchronize(c10::Stream stream) {
  call("cuStreamSynchronize", handle_of(stream));
}

void record(void** event, c10::Stream stream) {
  if (*event == nullptr) {
    call("cuEventCreate", event, 2U);
  }
  call("cuEventRecord", *event, handle_of(stream));
}

void block(void* event, c10::Stream stream) {
  if (event != nullptr) {
    call("cuStreamWaitEvent", handle_of(stream), event, 0U);
  }
}

bool is_over(void* event) {
  return event == nullptr || asks("cuEventQuery", event);
}

void destroy(void* event) {
  call("cuEventDestroy_v2", event);
}

void* allocate(std::size_t bytes) {
  std::uint64_t place = 0;
  call("cuMemAlloc_v2", &place, bytes);
  return reinterpret_cast<void*>(place);
}

}  // namespace fake_device
