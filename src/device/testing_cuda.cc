// A driver of CUDA without a GPU, for tests: memory of the host that other processes can map,
// streams that are threads, and kernels that run on the CPU. It has what unisono calls, and graphs.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/cuda_driver.h"
#include "device/testing_block.h"

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

using namespace unisono;
using namespace unisono::device;

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNotReady = 600;
constexpr unsigned kDeviceMemory = 2;

using Work = std::function<void()>;

struct Mapping {
  std::size_t bytes = 0;
  int file = -1;
};

struct Handle {  // in the 64 bytes of a CUipcMemHandle
  std::int64_t process = 0;
  std::uint64_t bytes = 0;
  std::int32_t file = -1;
};

class Stream;

struct Driver {
  std::mutex mutex = {};
  std::map<std::uint64_t, Mapping> mappings = {};
  std::map<std::uint64_t, Mapping> freed = {};  // while work that may reach it is not done
  std::atomic<int> undone = 0;                  // pieces of work of all streams
  std::string failing = {};
  int failing_after = 0;
  std::atomic<std::uint64_t> launches = 0;
  std::atomic<int> contexts = 0;
  Stream* legacy = nullptr;
};

Driver& driver() {
  static auto* const one = new Driver;  // streams of a process that exits may still run
  return *one;
}

void give_back_freed() {
  const std::lock_guard lock(driver().mutex);
  if (driver().undone != 0) {
    return;
  }
  for (const auto& [place, mapping] : driver().freed) {
    ::munmap(reinterpret_cast<void*>(place), mapping.bytes);
    ::close(mapping.file);
  }
  driver().freed.clear();
}

// Work in the order in which it came.
class Stream {
 public:
  Stream() : thread_([this] { loop(); }) {}
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void add(Work work) {
    const std::lock_guard lock(mutex_);
    if (capturing_) {
      graph_.push_back(std::move(work));
      return;
    }
    ++driver().undone;
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }
  bool is_done() {
    const std::lock_guard lock(mutex_);
    return queue_.empty();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty(); });
  }
  bool capturing() {
    const std::lock_guard lock(mutex_);
    return capturing_;
  }
  void begin_capture() {
    const std::lock_guard lock(mutex_);
    capturing_ = true;
  }
  std::vector<Work> end_capture() {
    const std::lock_guard lock(mutex_);
    capturing_ = false;
    return std::exchange(graph_, {});
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) {
        return;
      }
      const Work work = queue_.front();
      lock.unlock();
      work();
      if (--driver().undone == 0) {
        give_back_freed();
      }
      lock.lock();
      queue_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  std::deque<Work> queue_ = {};
  std::vector<Work> graph_ = {};
  bool capturing_ = false;
  bool closing_ = false;
  std::thread thread_;
};

struct Event {
  std::atomic<std::uint64_t> recorded = 0;
  std::atomic<std::uint64_t> done = 0;
};

Stream& stream_of(void* stream) {
  if (stream != nullptr) {
    return *static_cast<Stream*>(stream);
  }
  const std::lock_guard lock(driver().mutex);
  if (driver().legacy == nullptr) {
    driver().legacy = new Stream;
  }
  return *driver().legacy;
}

// Whether this call is the one that is to fail.
bool fails(const char* name) {
  const std::lock_guard lock(driver().mutex);
  return driver().failing == name && --driver().failing_after == 0;
}

int map_file(int file, std::size_t bytes, std::uint64_t* place) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    return kOutOfMemory;
  }
  *place = reinterpret_cast<std::uint64_t>(memory);
  const std::lock_guard lock(driver().mutex);
  driver().mappings[*place] = {.bytes = bytes, .file = file};
  return 0;
}

// A real driver waits for all kernels of the device first. Here the memory waits, and not the
// caller: a rank that frees while the kernel of another rank waits for it would wait for ever.
int unmap(std::uint64_t place) {
  {
    const std::lock_guard lock(driver().mutex);
    auto mapping = driver().mappings.extract(place);
    if (mapping.empty()) {
      return kInvalidValue;
    }
    driver().freed.insert(std::move(mapping));
  }
  give_back_freed();
  return 0;
}

void* the_context() {
  static int context;
  return &context;
}

thread_local void* current_context = nullptr;

}  // namespace

// What tests say to it: the n-th call of a function from now fails; what has not been given back.
FAKE void fake_cuda_fail(const char* name, int nth) {
  const std::lock_guard lock(driver().mutex);
  driver().failing = name;
  driver().failing_after = nth;
}
FAKE int fake_cuda_left() {
  const std::lock_guard lock(driver().mutex);
  return static_cast<int>(driver().mappings.size()) + driver().contexts.load();
}

FAKE const void* unisono_cuda_kernels(int dtype) {
  static const char names[64] = {};
  return names + dtype;
}
FAKE int cuInit(unsigned) {
  return fails("cuInit") ? 100 : 0;
}
FAKE int cuDeviceGet(int* device, int number) {
  *device = number;
  return number == 0 && !fails("cuDeviceGet") ? 0 : 101;
}
FAKE int cuDeviceGetAttribute(int* value, int, int) {
  *value = 8;
  return fails("cuDeviceGetAttribute") ? kInvalidValue : 0;
}
FAKE int cuDevicePrimaryCtxRetain(void** context, int) {
  if (fails("cuDevicePrimaryCtxRetain")) {
    return kOutOfMemory;
  }
  *context = the_context();
  ++driver().contexts;
  return 0;
}
FAKE int cuDevicePrimaryCtxRelease_v2(int) {
  --driver().contexts;
  return 0;
}
FAKE int cuCtxGetCurrent(void** context) {
  *context = current_context;
  return 0;
}
FAKE int cuCtxSetCurrent(void* context) {
  current_context = context;
  return fails("cuCtxSetCurrent") ? kInvalidValue : 0;
}
FAKE int cuCtxEnablePeerAccess(void*, unsigned) {
  return 0;
}
FAKE int cuModuleLoadData(void** module, const void* image) {
  *module = const_cast<void*>(image);
  return fails("cuModuleLoadData") ? 209 : 0;
}
FAKE int cuModuleUnload(void*) {
  return 0;
}
FAKE int cuModuleGetFunction(void** function, void* module, const char*) {
  *function = module;
  return fails("cuModuleGetFunction") ? 500 : 0;
}
FAKE int cuFuncGetAttribute(int* value, int, void*) {
  *value = 512;
  return fails("cuFuncGetAttribute") ? kInvalidValue : 0;
}
FAKE int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, std::size_t) {
  *blocks = 2;
  return fails("cuOccupancyMaxActiveBlocksPerMultiprocessor") ? kInvalidValue : 0;
}
FAKE int cuMemAlloc_v2(std::uint64_t* place, std::size_t bytes) {
  const int file = fails("cuMemAlloc_v2") ? -1 : ::memfd_create("device", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return kOutOfMemory;
  }
  return map_file(file, bytes, place);
}
FAKE int cuMemFree_v2(std::uint64_t place) {
  return unmap(place);
}
FAKE int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = fails("cuMemHostAlloc") ? nullptr : std::malloc(bytes);
  return *memory == nullptr ? kOutOfMemory : 0;
}
FAKE int cuMemFreeHost(void* memory) {
  std::free(memory);
  return 0;
}
FAKE int cuMemsetD8Async(std::uint64_t place, unsigned char value, std::size_t bytes,
                         void* stream) {
  if (fails("cuMemsetD8Async")) {
    return kInvalidValue;
  }
  stream_of(stream).add([=] { std::memset(reinterpret_cast<void*>(place), value, bytes); });
  return 0;
}
FAKE int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
  if (fails("cuMemcpyHtoDAsync_v2")) {
    return kInvalidValue;
  }
  stream_of(stream).add([=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return 0;
}
FAKE int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
  stream_of(stream).add([=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
  return 0;
}
FAKE int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes,
                              void* stream) {
  return cuMemcpyDtoHAsync_v2(reinterpret_cast<void*>(to), from, bytes, stream);
}
FAKE int cuIpcGetMemHandle(IpcHandle* handle, std::uint64_t place) {
  if (fails("cuIpcGetMemHandle")) {
    return kInvalidValue;
  }
  const std::lock_guard lock(driver().mutex);
  const auto at = driver().mappings.find(place);
  if (at == driver().mappings.end()) {
    return kInvalidValue;
  }
  const Handle told{.process = ::getpid(), .bytes = at->second.bytes, .file = at->second.file};
  std::memcpy(handle->bytes, &told, sizeof(told));
  return 0;
}
FAKE int cuIpcOpenMemHandle_v2(std::uint64_t* place, IpcHandle handle, unsigned) {
  Handle told;
  std::memcpy(&told, handle.bytes, sizeof(told));
  const std::string name =
      "/proc/" + std::to_string(told.process) + "/fd/" + std::to_string(told.file);
  const int file = fails("cuIpcOpenMemHandle_v2") ? -1 : ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  return file < 0 ? kInvalidValue : map_file(file, told.bytes, place);
}
FAKE int cuIpcCloseMemHandle(std::uint64_t place) {
  return unmap(place);
}
FAKE int cuStreamCreate(void** stream, unsigned) {
  if (fails("cuStreamCreate")) {
    return kOutOfMemory;
  }
  *stream = new Stream;
  return 0;
}
FAKE int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return 0;
}
FAKE int cuStreamQuery(void* stream) {
  return stream_of(stream).is_done() ? 0 : kNotReady;
}
FAKE int cuStreamSynchronize(void* stream) {
  stream_of(stream).wait();
  return fails("cuStreamSynchronize") ? 700 : 0;
}
FAKE int cuStreamIsCapturing(void* stream, int* capturing) {
  *capturing = stream_of(stream).capturing() ? 1 : 0;
  return 0;
}
FAKE int cuEventCreate(void** event, unsigned) {
  if (fails("cuEventCreate")) {
    return kOutOfMemory;
  }
  *event = new std::shared_ptr<Event>(std::make_shared<Event>());
  return 0;
}
FAKE int cuEventDestroy_v2(void* event) {
  delete static_cast<std::shared_ptr<Event>*>(event);
  return 0;
}
FAKE int cuEventRecord(void* event, void* stream) {
  const auto state = *static_cast<std::shared_ptr<Event>*>(event);
  const std::uint64_t ticket = ++state->recorded;
  stream_of(stream).add([state, ticket] { state->done = ticket; });
  return 0;
}
FAKE int cuEventQuery(void* event) {
  const auto& state = *static_cast<std::shared_ptr<Event>*>(event);
  return state->done >= state->recorded ? 0 : kNotReady;
}
FAKE int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const auto state = *static_cast<std::shared_ptr<Event>*>(event);
  const std::uint64_t ticket = state->recorded;
  stream_of(stream).add([state, ticket] {
    while (state->done < ticket) {
      std::this_thread::yield();
    }
  });
  return 0;
}
FAKE int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, void* stream, void** arguments, void**) {
  if (fails("cuLaunchKernel")) {
    return 719;
  }
  const auto launch = std::make_shared<const Launch>(*static_cast<const Launch*>(arguments[0]));
  const auto* const names = static_cast<const char*>(unisono_cuda_kernels(0));
  const auto dtype = static_cast<Dtype>(static_cast<const char*>(function) - names);
  stream_of(stream).add([launch, dtype] { run_on_cpu(*launch, dtype, ++driver().launches); });
  return 0;
}
FAKE int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  stream_of(stream).add([=] { function(data); });
  return 0;
}
FAKE int cuPointerGetAttribute(void* value, int, std::uint64_t place) {
  const std::lock_guard lock(driver().mutex);
  auto at = driver().mappings.upper_bound(place);
  if (at == driver().mappings.begin() ||
      place >= std::prev(at)->first + std::prev(at)->second.bytes) {
    return kInvalidValue;
  }
  *static_cast<unsigned*>(value) = kDeviceMemory;
  return 0;
}
FAKE int cuThreadExchangeStreamCaptureMode(int*) {
  return 0;
}
FAKE int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 100        ? "CUDA_ERROR_NO_DEVICE"
                                : "CUDA_ERROR_UNKNOWN";
  return 0;
}
FAKE int cuStreamBeginCapture_v2(void* stream, int) {
  stream_of(stream).begin_capture();
  return 0;
}
FAKE int cuStreamEndCapture(void* stream, void** graph) {
  *graph = new std::vector<Work>(stream_of(stream).end_capture());
  return 0;
}
FAKE int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  *executable = graph;
  return 0;
}
FAKE int cuGraphLaunch(void* executable, void* stream) {
  for (const Work& work : *static_cast<std::vector<Work>*>(executable)) {
    stream_of(stream).add(work);
  }
  return 0;
}
FAKE int cuGraphDestroy(void* graph) {
  delete static_cast<std::vector<Work>*>(graph);
  return 0;
}
