#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <vector>

#include "algorithms/catalog.h"
#include "base/hash.h"
#include "device/bind.h"
#include "device/cuda_driver.h"
#include "device/kernel_image.h"
#include "unisono/device.hpp"

namespace unisono {
namespace device {
namespace {

constexpr unsigned kThreads = 512;
constexpr std::size_t kImageBytes = std::size_t{8} << 20;
constexpr std::uint32_t kMaxRegions = 256;
constexpr std::size_t kSmall = std::size_t{64} << 10;  // all_reduce in one shot up to here
constexpr int kDefaultTimeout = 300'000;
constexpr auto kWatch = std::chrono::milliseconds(5);

std::size_t round_up(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Each thread that comes has the device's context while it is here.
class InContext {
 public:
  explicit InContext(void* context) {
    cuda_driver().cuCtxGetCurrent(&before_);
    if (before_ != context) {
      check_cuda(cuda_driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
      changed_ = true;
    }
  }
  ~InContext() {
    if (changed_) {
      cuda_driver().cuCtxSetCurrent(before_);
    }
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  void* before_ = nullptr;
  bool changed_ = false;
};

struct Introduction {
  std::int64_t process = 0;
  std::uint64_t base = 0;
  std::int32_t device = 0;
  std::int32_t channels = 0;
  std::uint64_t scratch = 0;
  IpcHandle handle = {};
};

struct RegionPlace {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  IpcHandle handle = {};
};

template <class Element>
std::vector<Element> gather(Communicator& comm, const Element& mine) {
  std::vector<Element> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

const char* kernel_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::i8: return "unisono_i8";
    case Dtype::u8: return "unisono_u8";
    case Dtype::boolean: return "unisono_u8";
    case Dtype::i32: return "unisono_i32";
    case Dtype::u32: return "unisono_u32";
    case Dtype::i64: return "unisono_i64";
    case Dtype::u64: return "unisono_u64";
    case Dtype::f16: return "unisono_f16";
    case Dtype::bf16: return "unisono_bf16";
    case Dtype::f8e4m3: return "unisono_f8e4m3";
    case Dtype::f8e5m2: return "unisono_f8e5m2";
    case Dtype::f32: return "unisono_f32";
    case Dtype::f64: return "unisono_f64";
  }
  return nullptr;
}

// bool as a byte of 0 or 1.
ReduceOp op_of_bytes(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::lor:
    case ReduceOp::bor:
      return ReduceOp::lor;
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::land:
    case ReduceOp::band:
      return ReduceOp::land;
    case ReduceOp::lxor:
    case ReduceOp::bxor:
      return ReduceOp::lxor;
    default:
      return op;
  }
}

bool is_supported(Dtype dtype, ReduceOp op) {
  const bool integer = dtype <= Dtype::u64 || dtype == Dtype::boolean;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::max:
      return true;
    case ReduceOp::avg:
      return dtype != Dtype::boolean;
    case ReduceOp::premul_sum:
      return !integer;
    case ReduceOp::user:
      return false;
    default:
      return integer;
  }
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::usage, what);
}

}  // namespace
}  // namespace device

namespace detail {

using namespace device;

struct DeviceState {
  DeviceState(Communicator& comm_of, const DeviceOptions& given) : comm(comm_of), options(given) {
    try {
      open();
    } catch (...) {
      close();
      throw;
    }
  }
  ~DeviceState() { close(); }
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;

  void open();
  void close() noexcept;
  void run(const Call& call, void* stream);
  void* allocate(std::size_t bytes);
  void check();
  void synchronize(void* stream, int timeout_ms);

  struct Planned {
    Launch launch;
    void* function = nullptr;
    std::size_t input_bytes = 0, output_bytes = 0;
  };
  const Planned& plan(const Call& call, bool in_place, bool direct);
  std::uint64_t upload(const void* data, std::size_t bytes);
  std::uint64_t allocate_here(std::size_t bytes);
  std::uint64_t map(const RegionPlace& place, bool here);
  std::uint32_t region_of(const void* data, std::size_t bytes) const;
  bool is_device(const void* data) const;
  void look_at(const Call& call) const;
  void watch();
  void end(const Error& why) noexcept;

  Communicator& comm;
  DeviceOptions options;
  int device_number = 0;
  void* context = nullptr;
  void* module = nullptr;
  std::map<Dtype, void*> functions = {};
  void* copies = nullptr;  // a stream for what we send to the device
  void* latest_event = nullptr;
  void* latest_stream = nullptr;
  bool any = false;
  std::uint32_t channels = 0;
  bool one_process = true;
  std::vector<Introduction> all = {};
  std::vector<Arena> arenas = {};
  std::vector<std::uint64_t> allocated = {}, mapped = {};
  std::uint64_t images = 0, images_used = 0;
  std::uint64_t shifts = 0;
  struct Region {
    std::uint64_t base = 0, bytes = 0;
  };
  std::vector<Region> regions = {};  // of this rank; number 1 is the first
  std::uint32_t* stop = nullptr;
  Status* status = nullptr;
  std::map<std::string, Planned> plans = {};

  std::mutex mutex = {};  // guards what follows
  std::condition_variable changed = {};
  std::optional<Error> ended = {};
  bool closing = false;
  std::thread watcher = {};
};

std::uint64_t DeviceState::allocate_here(std::size_t bytes) {
  std::uint64_t place = 0;
  check_cuda(cuda_driver().cuMemAlloc_v2(&place, std::max<std::size_t>(bytes, 1)), "cuMemAlloc");
  allocated.push_back(place);
  check_cuda(cuda_driver().cuMemsetD8Async(place, 0, bytes, copies), "cuMemsetD8Async");
  check_cuda(cuda_driver().cuStreamSynchronize(copies), "cuStreamSynchronize");
  return place;
}

std::uint64_t DeviceState::map(const RegionPlace& place, bool here) {
  if (here) {
    return place.base;
  }
  std::uint64_t result = 0;
  constexpr unsigned kLazyPeerAccess = 1;
  check_cuda(cuda_driver().cuIpcOpenMemHandle_v2(&result, place.handle, kLazyPeerAccess),
             "cuIpcOpenMemHandle");
  mapped.push_back(result);
  return result;
}

void DeviceState::open() {
  const CudaDriver& driver = cuda_driver();
  if (comm.hosts() != 1) {
    refuse("the ranks of a device group are on " + std::to_string(comm.hosts()) +
           " hosts\nsplit the communicator by host, and go between hosts with its own calls");
  }
  const int ranks = comm.size();
  if (ranks > kMaxRanks) {
    refuse("a device group of " + std::to_string(ranks) + " ranks\nat most " +
           std::to_string(kMaxRanks) + " are possible");
  }
  if (kernel_image() == nullptr) {
    throw Error(ErrorCode::config,
                "this library was built without nvcc and has no kernels\nbuild it where CUDA's "
                "compiler is");
  }
  int device_handle = 0;
  if (driver.cuDeviceGet(&device_handle, options.device) != 0) {
    throw Error(ErrorCode::config, "there is no device " + std::to_string(options.device) +
                                       "\nsee nvidia-smi -L, and CUDA_VISIBLE_DEVICES");
  }
  check_cuda(driver.cuDevicePrimaryCtxRetain(&context, device_handle), "cuDevicePrimaryCtxRetain");
  const InContext here(context);
  check_cuda(driver.cuModuleLoadData(&module, kernel_image()), "cuModuleLoadData");
  int least = 1 << 20;
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    void* function = nullptr;
    check_cuda(driver.cuModuleGetFunction(&function, module, kernel_name(dtype)),
               "cuModuleGetFunction");
    // Loaded now: loading waits for kernels that run, and those may wait for this rank.
    int registers = 0;
    check_cuda(driver.cuFuncGetAttribute(&registers, 4, function), "cuFuncGetAttribute");
    int blocks = 0;
    check_cuda(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, kThreads, 0),
               "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    least = std::min(least, blocks);
    functions[dtype] = function;
  }
  constexpr unsigned kNonBlocking = 1;
  check_cuda(driver.cuStreamCreate(&copies, kNonBlocking), "cuStreamCreate");
  constexpr unsigned kNoTiming = 2;
  check_cuda(driver.cuEventCreate(&latest_event, kNoTiming), "cuEventCreate");

  // All blocks of all ranks of a device must have room at once.
  constexpr int kProcessors = 16;
  int processors = 1;
  check_cuda(driver.cuDeviceGetAttribute(&processors, kProcessors, device_handle),
             "cuDeviceGetAttribute");
  Introduction mine{.process = ::getpid(), .device = options.device,
                    .channels = options.channels, .scratch = options.scratch_bytes};
  int beside = 0;
  for (const Introduction& one : gather(comm, mine)) {
    beside += one.device == mine.device ? 1 : 0;
  }
  const int room = std::max(1, least * processors / beside);
  mine.channels = options.channels != 0 ? options.channels : std::min(32, room);
  if (mine.channels > room) {
    mine.channels = -room;
  }
  std::vector<Introduction> asked = gather(comm, mine);
  for (const Introduction& one : asked) {
    if (one.channels < 0) {
      refuse(std::to_string(options.channels) + " channels for each of " + std::to_string(beside) +
             " ranks of a device, which has room for " + std::to_string(-one.channels) +
             " each\nask for fewer");
    }
    if (one.scratch != options.scratch_bytes) {
      refuse("ranks have other options\ngive all ranks of a device group the same scratch_bytes");
    }
    mine.channels = std::min(mine.channels, one.channels);
  }
  channels = static_cast<std::uint32_t>(mine.channels);

  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t counts = round_up(channels * n * sizeof(std::uint64_t));
  const std::size_t records = round_up(channels * 2 * n * sizeof(Record));
  const std::size_t epochs = round_up(channels * sizeof(std::uint64_t));
  mine.base = allocate_here(counts + records + epochs + options.scratch_bytes);
  if (ranks > 1) {
    check_cuda(driver.cuIpcGetMemHandle(&mine.handle, mine.base), "cuIpcGetMemHandle");
  }
  all = gather(comm, mine);
  for (const Introduction& one : all) {
    one_process = one_process && one.process == mine.process;
  }
  for (const Introduction& one : all) {
    const std::uint64_t base = map({.base = one.base, .bytes = 0, .handle = one.handle},
                                   one.process == mine.process);
    arenas.push_back({.counts = reinterpret_cast<std::uint64_t*>(base),
                      .records = reinterpret_cast<Record*>(base + counts),
                      .epochs = reinterpret_cast<std::uint64_t*>(base + counts + records),
                      .scratch = reinterpret_cast<unsigned char*>(base + counts + records + epochs)});
  }
  images = allocate_here(kImageBytes);
  shifts = allocate_here(kMaxRegions * n * sizeof(std::uint64_t));
  void* memory = nullptr;
  constexpr unsigned kPortableMapped = 3;
  check_cuda(driver.cuMemHostAlloc(&memory, 4096 + channels * sizeof(Status), kPortableMapped),
             "cuMemHostAlloc");
  std::memset(memory, 0, 4096 + channels * sizeof(Status));
  stop = static_cast<std::uint32_t*>(memory);
  status = reinterpret_cast<Status*>(static_cast<char*>(memory) + 4096);
  comm.barrier();
  watcher = std::thread([this] { watch(); });
}

void DeviceState::close() noexcept {
  if (watcher.joinable()) {
    {
      const std::lock_guard lock(mutex);
      closing = true;
    }
    changed.notify_all();
    watcher.join();
  }
  if (context == nullptr) {
    return;
  }
  const CudaDriver& driver = cuda_driver();
  void* before = nullptr;
  driver.cuCtxGetCurrent(&before);
  driver.cuCtxSetCurrent(context);
  if (stop != nullptr) {
    if (any && !ended) {
      driver.cuStreamSynchronize(latest_stream);
    }
    std::atomic_ref(*stop).store(1);
    if (any) {
      driver.cuStreamSynchronize(latest_stream);
    }
    if (!ended) {
      try {
        comm.barrier();  // nobody reaches this memory any more
      } catch (const Error&) {
        // Who does not come has stopped as well: its world has ended.
      }
    }
    driver.cuMemFreeHost(stop);
  }
  for (const std::uint64_t place : mapped) {
    driver.cuIpcCloseMemHandle(place);
  }
  for (const std::uint64_t place : allocated) {
    driver.cuMemFree_v2(place);
  }
  if (copies != nullptr) {
    driver.cuStreamDestroy_v2(copies);
  }
  if (latest_event != nullptr) {
    driver.cuEventDestroy_v2(latest_event);
  }
  driver.cuCtxSetCurrent(before);
}

void DeviceState::end(const Error& why) noexcept {
  const std::lock_guard lock(mutex);
  if (!ended) {
    ended = why;
  }
  std::atomic_ref(*stop).store(1);
}

// Looks for what ends the group: kernels cannot.
void DeviceState::watch() {
  const int limit = options.timeout_ms < 0 ? kDefaultTimeout : options.timeout_ms;
  std::uint32_t late = 0;
  auto since = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, kWatch, [this] { return closing; })) {
    if (ended) {
      continue;
    }
    lock.unlock();
    if (const std::optional<Error> failure = comm.failure()) {
      end(*failure);
    }
    std::uint32_t now_late = 0;
    for (std::uint32_t c = 0; c < channels; ++c) {
      const std::uint32_t other = std::atomic_ref(status[c].mismatch).load();
      if (other != 0) {
        const Error error(ErrorCode::mismatch,
                          "device group: rank " + std::to_string(other - 1) +
                              " means another call than rank " + std::to_string(comm.rank()) +
                              "\nmake the same calls in the same order on all ranks, with memory of "
                              "allocate() on all or on none",
                          {.rank = comm.rank(), .peer = static_cast<int>(other) - 1});
        comm.abort(error.message());
        end(error);
        break;
      }
      const std::uint32_t waits = std::atomic_ref(status[c].late).load();
      now_late = now_late == 0 ? waits : now_late;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now_late == 0 || now_late != late) {
      late = now_late;
      since = now;
    } else if (limit != 0 && now - since > std::chrono::milliseconds(limit)) {
      const Error error(ErrorCode::timeout,
                        "device group: rank " + std::to_string(late - 1) +
                            " has not come for " + std::to_string(limit) +
                            " ms\nsee what it does; DeviceOptions::timeout_ms is the limit",
                        {.rank = comm.rank(), .peer = static_cast<int>(late) - 1});
      comm.abort(error.message());
      end(error);
    }
    lock.lock();
  }
}

void DeviceState::check() {
  const std::lock_guard lock(mutex);
  if (ended) {
    throw *ended;
  }
}

void DeviceState::synchronize(void* stream, int timeout_ms) {
  const InContext here(context);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kNotReady = 600;
  for (int looks = 0;; ++looks) {
    const int error = cuda_driver().cuStreamQuery(stream);
    if (error != kNotReady) {
      check();
      check_cuda(error, "cuStreamQuery");
      return;
    }
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (timeout_ms != 0 && waited > std::chrono::milliseconds(timeout_ms)) {
      throw Error(ErrorCode::timeout, "the stream is not done after " + std::to_string(timeout_ms) +
                                          " ms\nits work goes on; ask again, or abort()");
    }
    if (waited > std::chrono::milliseconds(1)) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

void* DeviceState::allocate(std::size_t bytes) {
  check();
  const InContext here(context);
  if (regions.size() + 1 >= kMaxRegions) {
    refuse("more than " + std::to_string(kMaxRegions - 1) +
           " allocations of a device group\nallocate larger pieces, and cut them");
  }
  RegionPlace mine{.base = allocate_here(round_up(bytes)), .bytes = bytes};
  check_cuda(cuda_driver().cuIpcGetMemHandle(&mine.handle, mine.base), "cuIpcGetMemHandle");
  std::vector<std::uint64_t> row;
  const std::vector<RegionPlace> places = gather(comm, mine);
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    row.push_back(map(places[rank], all[rank].process == ::getpid()) - places[rank].base);
  }
  regions.push_back({.base = mine.base, .bytes = bytes});
  check_cuda(cuda_driver().cuMemcpyHtoDAsync_v2(shifts + regions.size() * row.size() * 8, row.data(),
                                                row.size() * 8, copies),
             "cuMemcpyHtoDAsync");
  check_cuda(cuda_driver().cuStreamSynchronize(copies), "cuStreamSynchronize");
  return reinterpret_cast<void*>(mine.base);
}

std::uint32_t DeviceState::region_of(const void* data, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uint64_t>(data);
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (at >= regions[i].base && at + bytes <= regions[i].base + regions[i].bytes) {
      return static_cast<std::uint32_t>(i + 1);
    }
  }
  return 0;
}

bool DeviceState::is_device(const void* data) const {
  constexpr int kMemoryType = 2;
  constexpr unsigned kDeviceMemory = 2;
  unsigned type = 0;
  const int error = cuda_driver().cuPointerGetAttribute(&type, kMemoryType,
                                                        reinterpret_cast<std::uint64_t>(data));
  return error == 0 && type == kDeviceMemory;
}

void DeviceState::look_at(const Call& call) const {
  if (is_v_form(call.collective)) {
    refuse(std::string(to_string(call.collective)) +
           " is not there for device memory yet\nuse the form with equal parts");
  }
  if (reduces(call.collective) && !is_supported(call.dtype, call.reduction.op)) {
    refuse("no kernel of device memory does " + std::string(to_string(call.reduction.op)) + " of " +
           std::string(to_string(call.dtype)) + "\nsee the table of ReduceOp");
  }
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= comm.size())) {
    refuse("root " + std::to_string(call.root) + " of " + std::to_string(comm.size()) + " ranks");
  }
}

std::uint64_t DeviceState::upload(const void* data, std::size_t bytes) {
  const std::uint64_t at = images + images_used;
  if (images_used + bytes > kImageBytes) {
    throw Error(ErrorCode::resource, "a device group has no room for another kind of call\nmake a "
                                     "new group, or fewer different calls");
  }
  images_used += (bytes + 63) / 64 * 64;
  if (bytes != 0) {
    int mode = 2;  // relaxed: another stream of this thread may be capturing
    cuda_driver().cuThreadExchangeStreamCaptureMode(&mode);
    check_cuda(cuda_driver().cuMemcpyHtoDAsync_v2(at, data, bytes, copies), "cuMemcpyHtoDAsync");
    check_cuda(cuda_driver().cuStreamSynchronize(copies), "cuStreamSynchronize");
    cuda_driver().cuThreadExchangeStreamCaptureMode(&mode);
  }
  return at;
}

const DeviceState::Planned& DeviceState::plan(const Call& call, bool in_place, bool direct) {
  const int ranks = comm.size();
  const std::size_t size = size_of(call.dtype);
  const bool sums = reduces(call.collective);
  const ReduceOp op = !sums                              ? ReduceOp::sum
                      : call.dtype == Dtype::boolean ? op_of_bytes(call.reduction.op)
                                                     : call.reduction.op;
  std::string name(call.algorithm);
  const bool small = call.count * size <= kSmall;
  if (name.empty() || name == "reproducible") {
    name = call.collective == Collective::all_reduce && small ? "one_shot" : "flat";
  }
  std::string key = std::to_string(static_cast<int>(call.collective)) + ' ' + name;
  for (const std::size_t part : {static_cast<std::size_t>(call.dtype), static_cast<std::size_t>(op),
                                 call.count, static_cast<std::size_t>(call.root),
                                 std::size_t{in_place}, std::size_t{direct}}) {
    key += ' ' + std::to_string(part);
  }
  const auto known = plans.find(key);
  if (known != plans.end()) {
    return known->second;
  }
  const Algorithm* algorithm = find_algorithm(call.collective, name);
  if (algorithm == nullptr) {
    refuse("no algorithm " + name + " for " + std::string(to_string(call.collective)) +
           "\nsee unisono list");
  }
  Shape shape{.ranks = ranks, .root = call.root, .parameters = parse_parameters(*algorithm, name)};
  shape = complete(*algorithm, shape);
  if (!can_serve(*algorithm, shape)) {
    refuse(name + " does not serve " + std::to_string(ranks) + " ranks\n" +
           std::string(algorithm->limits));
  }
  const Schedule schedule = build_schedule(*algorithm, shape);
  const Graph graph = build_graph(schedule, {.in_place = in_place, .direct = direct});
  const std::vector<engine::Sizes> sizes(static_cast<std::size_t>(ranks),
                                         {.element = size, .count = call.count});
  const BoundImage image =
      bind_images(graph, schedule, sizes)[static_cast<std::size_t>(comm.rank())];
  const bool wide = op == ReduceOp::avg && (call.dtype <= Dtype::u32);
  for (const Pass& pass : image.passes) {
    if (wide && pass.finish != 0 && pass.sources != static_cast<std::uint32_t>(ranks)) {
      refuse(name + " sums in several passes, in which the average of " +
             std::string(to_string(call.dtype)) + " would wrap\nuse flat");
    }
  }
  Planned planned;
  Launch& launch = planned.launch;
  const auto put = [&](const auto& list) {
    return upload(list.data(), list.size() * sizeof(list[0]));
  };
  launch.image.passes = reinterpret_cast<const Pass*>(put(image.passes));
  launch.image.operands = reinterpret_cast<const Operand*>(put(image.operands));
  launch.image.waits = reinterpret_cast<const Wait*>(put(image.waits));
  launch.image.pass_count = static_cast<std::uint32_t>(image.passes.size());
  launch.image.exit_waits = image.exit_waits;
  launch.image.exit_wait_count = image.exit_wait_count;
  launch.image.slots = image.slots;
  launch.image.stride = image.stride;
  std::copy(arenas.begin(), arenas.end(), launch.arenas);
  launch.shifts = reinterpret_cast<const std::uint64_t*>(shifts);
  const std::uint64_t vector = image.most_bytes * static_cast<std::uint64_t>(schedule.chunks);
  launch.channels = std::min<std::uint32_t>(
      channels, vector <= (std::uint64_t{64} << 10)  ? 2
                : vector <= (std::uint64_t{1} << 20) ? 8
                                                     : channels);
  const std::uint64_t lines = (image.most_bytes + 127) / 128;
  const std::uint64_t slice =
      std::max<std::uint64_t>(1, (lines + launch.channels - 1) / launch.channels) * 128;
  launch.part = slice;
  if (image.slots != 0) {
    const std::uint64_t room = options.scratch_bytes / channels / image.slots / 128 * 128;
    if (room == 0) {
      refuse("the scratch of a device group is too small for " + name +
             "\nask for more DeviceOptions::scratch_bytes");
    }
    launch.part = std::min(slice, room);
  }
  launch.parts = (slice + launch.part - 1) / launch.part;
  launch.signature = Hash().add(key).value();
  launch.op = static_cast<std::uint32_t>(op);
  launch.multiplies = op == ReduceOp::premul_sum ? 1 : 0;
  launch.divisor = static_cast<std::uint32_t>(ranks);
  launch.rank = static_cast<std::uint32_t>(comm.rank());
  launch.ranks = static_cast<std::uint32_t>(ranks);
  launch.stop = stop;
  launch.status = status;
  planned.function = functions.at(call.dtype);
  const auto n = static_cast<std::size_t>(ranks);
  const CollectiveTraits& traits = traits_of(call.collective);
  const auto bytes_of = [&](Holding holding) {
    const bool mine = comm.rank() == call.root;
    switch (holding) {
      case Holding::nothing:
        return std::size_t{0};
      case Holding::part:
        return call.count * size;
      case Holding::pairs:
        return n * call.count * size;
      case Holding::whole:
      case Holding::whole_at_root:
        break;
    }
    if (holding == Holding::whole_at_root && !mine) {
      return std::size_t{0};
    }
    return (cut_of(call.collective) == VectorCut::parts ? n : 1) * call.count * size;
  };
  planned.input_bytes = bytes_of(traits.input);
  planned.output_bytes = bytes_of(traits.output);
  return plans.emplace(key, planned).first->second;
}

void DeviceState::run(const Call& call, void* stream) {
  check();
  look_at(call);
  const InContext here(context);
  const bool vectors = cut_of(call.collective) == VectorCut::none;
  // Who has no input says nothing of whether it is in place: the others' does.
  const bool in_place = vectors && moves_data(call.collective) &&
                        (call.in == call.out || call.collective == Collective::broadcast);
  const auto device_in = call.in == nullptr || is_device(call.in);
  const auto device_out = call.out == nullptr || is_device(call.out);
  if (!device_in || !device_out) {
    refuse("in is memory of the " + std::string(device_in ? "device" : "host") + ", out of the " +
           (device_out ? "device" : "host") +
           "\ngive a device group device memory, and its communicator memory of the host");
  }
  const std::uint32_t in_region = region_of(call.in, 1);
  const std::uint32_t out_region = region_of(call.out, 1);
  const bool direct = one_process || ((call.in == nullptr || in_region != 0) &&
                                      (call.out == nullptr || out_region != 0));
  const Planned& planned = plan(call, in_place, direct);
  if ((planned.input_bytes != 0 && call.in == nullptr && !in_place) ||
      (planned.output_bytes != 0 && call.out == nullptr)) {
    refuse("a buffer of " + std::string(to_string(call.collective)) + " is missing");
  }
  Launch launch = planned.launch;
  launch.input = reinterpret_cast<std::uint64_t>(in_place ? call.out : call.in);
  launch.output = reinterpret_cast<std::uint64_t>(call.out);
  if (!one_process) {
    launch.input_region = in_place ? out_region : in_region;
    launch.output_region = out_region;
  }
  launch.factor = call.reduction.factor;
  const CudaDriver& driver = cuda_driver();
  int capturing = 0;
  check_cuda(driver.cuStreamIsCapturing(stream, &capturing), "cuStreamIsCapturing");
  if (any && stream != latest_stream && capturing == 0) {
    check_cuda(driver.cuStreamWaitEvent(stream, latest_event, 0), "cuStreamWaitEvent");
  }
  void* arguments[] = {&launch};
  check_cuda(driver.cuLaunchKernel(planned.function, launch.channels, 1, 1, kThreads, 1, 1, 0,
                                   stream, arguments, nullptr),
             "cuLaunchKernel");
  if (capturing == 0) {
    check_cuda(driver.cuEventRecord(latest_event, stream), "cuEventRecord");
    latest_stream = stream;
    any = true;
  }
}

}  // namespace detail

DeviceGroup::DeviceGroup(Communicator& comm, const DeviceOptions& options)
    : state_(std::make_unique<detail::DeviceState>(comm, options)) {}
DeviceGroup::DeviceGroup(DeviceGroup&&) noexcept = default;
DeviceGroup& DeviceGroup::operator=(DeviceGroup&&) noexcept = default;
DeviceGroup::~DeviceGroup() = default;
void DeviceGroup::run(const Call& call, DeviceStream stream) {
  state_->run(call, stream);
}
void* DeviceGroup::allocate(std::size_t bytes) {
  return state_->allocate(bytes);
}
void DeviceGroup::check() const {
  state_->check();
}
void DeviceGroup::synchronize(DeviceStream stream, int timeout_ms) const {
  state_->synchronize(stream, timeout_ms);
}

}  // namespace unisono
