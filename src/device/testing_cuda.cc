// A CUDA driver for tests, which needs no GPU. Device memory is host memory that other processes
// can map, streams are threads, and kernels run on the CPU. It implements graphs and the functions
// that unisono calls.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda_driver.h"
#include "device/testing_block.h"
#include "device/testing_memory.h"
#include "device/testing_streams.h"

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

using namespace unisono;
using namespace unisono::device;
using fake::captures;
using fake::current_context;
using fake::Event;
using fake::Graph;
using fake::kInvalidContext;
using fake::kInvalidHandle;
using fake::kInvalidValue;
using fake::kNotReady;
using fake::kOutOfMemory;
using fake::memory;
using fake::Stream;

constexpr unsigned kDeviceMemory = 2;
constexpr int kProcessors = 16;  // CU_DEVICE_ATTRIBUTE_...

struct Driver {
  std::mutex mutex = {};
  std::string failing = {};
  int failing_after = 0;
  std::atomic<std::uint64_t> launches = 0;
  std::atomic<int> contexts = 0;
  std::map<const fake::Context*, Stream*> legacy = {};
  std::vector<Stream**> free_handles = {};  // handles of destroyed streams
};

Driver& driver() {
  static auto* const one = new Driver;  // streams of an exiting process may still run
  return *one;
}

Stream& stream_of(void* stream) {
  if (stream != nullptr) {
    return **static_cast<Stream**>(stream);
  }
  fake::Context& context = *current_context();
  const std::lock_guard lock(driver().mutex);
  Stream*& legacy = driver().legacy[&context];
  if (legacy == nullptr) {
    legacy = new Stream(context);
  }
  return *legacy;
}

// A module with its only function.
struct Kernel {
  const fake::Context& context;
  Dtype dtype;
};

// Checks each operand while the kernel runs, because other ranks' buffers are not known earlier.
void run_kernel(const fake::Context& context, const Launch& launch, Dtype dtype) {
  const auto uses = [&context](const void* data, const char* what) {
    memory().check_use(context, data, what);
  };
  for (std::uint32_t rank = 0; rank < launch.ranks; ++rank) {
    uses(reinterpret_cast<const void*>(launch.arenas[rank]), "an arena");
  }
  uses(launch.shifts, "its shifts");
  uses(launch.image.passes, "its passes");
  uses(launch.image.operands, "its operands");
  uses(launch.image.waits, "its waits");
  run_on_cpu(launch, dtype, ++driver().launches,
             [&uses](const void* data) { uses(data, "an operand"); });
}

// Returns true if this call should fail.
bool fails(const char* name) {
  const std::lock_guard lock(driver().mutex);
  return driver().failing == name && --driver().failing_after == 0;
}

}  // namespace

// Control functions for tests: make the n-th call of a function from now fail, list memory that was
// not freed, declare memory as pool memory.
FAKE void fake_cuda_fail(const char* name, int nth) {
  const std::lock_guard lock(driver().mutex);
  driver().failing = name;
  driver().failing_after = nth;
}
FAKE int fake_cuda_left() {
  return memory().size() + driver().contexts.load();
}

FAKE void fake_cuda_put_in_pool(std::uint64_t place) {
  memory().put_in_pool(place);
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
  return fake::primary_context(number) != nullptr && !fails("cuDeviceGet") ? 0 : 101;
}
// Device 0 has 8 processors; each further device has half as many as the previous one.
FAKE int cuDeviceGetAttribute(int* value, int which, int device) {
  *value = which == kProcessors ? 8 >> fake::primary_context(device)->device : 8;
  return fails("cuDeviceGetAttribute") ? kInvalidValue : 0;
}
FAKE int cuDeviceGetUuid_v2(DeviceUuid* uuid, int device) {
  *uuid = {};
  uuid->bytes[0] = static_cast<char>(fake::primary_context(device)->device + 1);
  return fails("cuDeviceGetUuid_v2") ? kInvalidValue : 0;
}
FAKE int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (fails("cuDevicePrimaryCtxRetain")) {
    return kOutOfMemory;
  }
  fake::Context* const primary = fake::primary_context(device);
  ++primary->retained;
  ++driver().contexts;
  *context = primary;
  return 0;
}
FAKE int cuDevicePrimaryCtxRelease_v2(int device) {
  fake::Context* const primary = fake::primary_context(device);
  if (--primary->retained == 0) {
    memory().disable_peers(*primary);
  }
  --driver().contexts;
  return 0;
}
FAKE int cuCtxGetCurrent(void** context) {
  *context = fake::set_context();
  return 0;
}
FAKE int cuCtxSetCurrent(void* context) {
  if (fails("cuCtxSetCurrent")) {
    return kInvalidValue;
  }
  fake::set_context() = static_cast<fake::Context*>(context);
  return 0;
}
FAKE int cuCtxEnablePeerAccess(void* peer, unsigned flags) {
  fake::Context* const context = current_context();
  if (fails("cuCtxEnablePeerAccess")) {
    return fake::kTooManyPeers;
  }
  return context == nullptr ? kInvalidContext
         : peer == context || flags != 0
             ? kInvalidValue
             : memory().enable_peer(*context, *static_cast<fake::Context*>(peer));
}
FAKE int cuModuleLoadData(void** module, const void* image) {
  if (fails("cuModuleLoadData")) {
    return 209;
  }
  if (const int error = captures().unsafe()) {
    return error;
  }
  if (current_context() == nullptr) {
    return kInvalidContext;
  }
  const auto* const names = static_cast<const char*>(unisono_cuda_kernels(0));
  *module = new Kernel{.context = *current_context(),
                       .dtype = static_cast<Dtype>(static_cast<const char*>(image) - names)};
  return 0;
}
FAKE int cuModuleUnload(void* module) {
  delete static_cast<Kernel*>(module);
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
  if (fails("cuMemAlloc_v2")) {
    return kOutOfMemory;
  }
  if (const int error = captures().unsafe()) {
    return error;
  }
  return current_context() == nullptr ? kInvalidContext
                                      : memory().allocate(*current_context(), bytes, place);
}
FAKE int cuMemFree_v2(std::uint64_t place) {
  return memory().give_back(place);
}
FAKE int cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  if (const int error = captures().unsafe()) {
    return error;
  }
  *data = fails("cuMemHostAlloc") ? nullptr : std::malloc(bytes);
  return *data == nullptr ? kOutOfMemory : 0;
}
FAKE int cuMemFreeHost(void* data) {
  std::free(data);
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
  if (const int error = captures().unsafe()) {
    return error;  // with pageable host memory, this call may wait
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
  return fails("cuIpcGetMemHandle") ? kInvalidValue : memory().handle_of(place, handle);
}
FAKE int cuIpcOpenMemHandle_v2(std::uint64_t* place, IpcHandle handle, unsigned) {
  if (fails("cuIpcOpenMemHandle_v2")) {
    return kInvalidValue;
  }
  return current_context() == nullptr ? kInvalidContext
                                      : memory().open(*current_context(), handle, place);
}
FAKE int cuIpcCloseMemHandle(std::uint64_t place) {
  return memory().give_back(place);
}
FAKE int cuStreamCreate(void** stream, unsigned) {
  if (fails("cuStreamCreate")) {
    return kOutOfMemory;
  }
  if (current_context() == nullptr) {
    return kInvalidContext;
  }
  auto* const made = new Stream(*current_context());
  const std::lock_guard lock(driver().mutex);
  std::vector<Stream**>& handles = driver().free_handles;
  if (handles.empty()) {
    handles.push_back(new Stream*(nullptr));
  }
  Stream** const handle = handles.back();
  handles.pop_back();
  *handle = made;
  *stream = handle;
  return 0;
}
FAKE int cuStreamGetId(void* stream, std::uint64_t* id) {
  *id = stream_of(stream).id();
  return captures().id_of(stream_of(stream)) == 0 ? 0 : fake::kCaptureUnsupported;
}
FAKE int cuStreamGetCtx(void* stream, void** context) {
  *context = &stream_of(stream).context();
  return 0;
}
// Returns at once; pending work still completes. The next stream gets this handle.
FAKE int cuStreamDestroy_v2(void* stream) {
  auto* const handle = static_cast<Stream**>(stream);
  std::thread([destroyed = *handle] { delete destroyed; }).detach();
  const std::lock_guard lock(driver().mutex);
  driver().free_handles.push_back(handle);
  return 0;
}
FAKE int cuStreamQuery(void* stream) {
  if (const int error = captures().query(stream_of(stream))) {
    return error;
  }
  return stream_of(stream).is_done() ? 0 : kNotReady;
}
FAKE int cuStreamSynchronize(void* stream) {
  if (const int error = captures().query(stream_of(stream))) {
    return error;
  }
  stream_of(stream).wait();
  return fails("cuStreamSynchronize") ? 700 : 0;
}
FAKE int cuStreamIsCapturing(void* stream, int* capturing) {
  *capturing = captures().id_of(stream_of(stream)) == 0 ? 0 : 1;
  return 0;
}
FAKE int cuStreamGetCaptureInfo(void* stream, int* capturing, std::uint64_t* id) {
  *id = captures().id_of(stream_of(stream));
  *capturing = *id == 0 ? 0 : 1;
  return 0;
}
FAKE int cuEventCreate(void** event, unsigned) {
  if (fails("cuEventCreate")) {
    return kOutOfMemory;
  }
  const auto state = std::make_shared<Event>();
  state->context = current_context();
  *event = new std::shared_ptr<Event>(state);
  return 0;
}
FAKE int cuEventDestroy_v2(void* event) {
  delete static_cast<std::shared_ptr<Event>*>(event);
  return 0;
}
FAKE int cuEventRecord(void* event, void* stream) {
  return stream_of(stream).record(*static_cast<std::shared_ptr<Event>*>(event));
}
FAKE int cuEventQuery(void* event) {
  const auto& state = *static_cast<std::shared_ptr<Event>*>(event);
  if (const int error = captures().query(*state)) {
    return error;
  }
  return state->done >= state->recorded ? 0 : kNotReady;
}
FAKE int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return stream_of(stream).wait_for(*static_cast<std::shared_ptr<Event>*>(event));
}
FAKE int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, void* stream, void** arguments, void**) {
  if (fails("cuLaunchKernel")) {
    return 719;
  }
  const Kernel kernel = *static_cast<const Kernel*>(function);
  if (&kernel.context != current_context() || &stream_of(stream).context() != &kernel.context) {
    return kInvalidHandle;
  }
  const auto launch = std::make_shared<const Launch>(*static_cast<const Launch*>(arguments[0]));
  stream_of(stream).add([launch, kernel] { run_kernel(kernel.context, *launch, kernel.dtype); });
  return 0;
}
FAKE int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  stream_of(stream).add([=] { function(data); });
  return 0;
}
// Returns the memory's type, its device as numbered in the process, whether it is managed (never),
// and whether cudaMalloc made it.
FAKE int cuPointerGetAttributes(unsigned count, const int* which, void** values,
                                std::uint64_t place) {
  const int device = memory().device_of(place);
  const std::vector<int> visible = fake::visible_devices();
  for (unsigned k = 0; k < count; ++k) {
    int value = 0;
    if (which[k] == 2) {
      value = device < 0 ? 0 : static_cast<int>(kDeviceMemory);
    } else if (which[k] == 9) {
      const auto at = std::find(visible.begin(), visible.end(), device);
      value = at == visible.end() ? -2 : static_cast<int>(at - visible.begin());
    } else if (which[k] == 10) {
      value = device < 0 || memory().is_in_pool(place) ? 0 : 1;
    }
    *static_cast<int*>(values[k]) = value;
  }
  return 0;
}
FAKE int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, fake::capture_mode());
  return 0;
}
FAKE int cuGetErrorName(int error, const char** name) {
  static const std::map<int, const char*> names = {
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {fake::kPeerAccessUnsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
      {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {fake::kTooManyPeers, "CUDA_ERROR_TOO_MANY_PEERS"}};
  const auto found = names.find(error);
  *name = found == names.end() ? "CUDA_ERROR_UNKNOWN" : found->second;
  return 0;
}
FAKE int cuStreamBeginCapture_v2(void* stream, int mode) {
  return captures().begin(stream_of(stream), mode);
}
FAKE int cuStreamEndCapture(void* stream, void** graph) {
  std::shared_ptr<Graph> captured;
  const int error = captures().end(stream_of(stream), &captured);
  *graph = error == 0 ? new std::shared_ptr<Graph>(captured) : nullptr;
  return error;
}
FAKE int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  *executable = graph;
  return 0;
}
FAKE int cuGraphLaunch(void* executable, void* stream) {
  stream_of(stream).add(
      [graph = *static_cast<std::shared_ptr<Graph>*>(executable)] { graph->replay(); });
  return 0;
}
FAKE int cuGraphDestroy(void* graph) {
  delete static_cast<std::shared_ptr<Graph>*>(graph);
  return 0;
}
