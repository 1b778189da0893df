#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/collectives.h"
#include "base/hash.h"
#include "device/blocks.h"
#include "device/gather.h"
#include "device/kernels.h"
#include "device/plans.h"
#include "device/residence.h"
#include "device/shared_memory.h"
#include "device/watchdog.h"
#include "unisono/device.hpp"

namespace unisono {
namespace device {
namespace {

constexpr int kDefaultTimeoutMs = 300'000;
constexpr int kMostChannels = 32;
constexpr auto kSpin = std::chrono::milliseconds(1);
constexpr auto kSleep = std::chrono::microseconds(20);
constexpr auto kUntilOthersStop = std::chrono::milliseconds(50);
constexpr unsigned kNoTiming = 2;  // CU_EVENT_DISABLE_TIMING

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::usage, what);
}

// Agrees on the number of thread blocks per rank. All blocks of all ranks on a device must be
// resident at once.
std::uint32_t agree_on_channels(Communicator& comm, const DeviceOptions& options,
                                const Context& context, const Kernels& kernels) {
  struct ChannelRequest {
    std::uint64_t scratch = 0;
    std::int64_t channels = 0;
    std::int64_t room = 0;
  };
  ChannelRequest mine{.scratch = options.scratch_bytes};
  DeviceUuid uuid;
  together(comm, [&] { uuid = context.uuid(); });
  const std::vector<DeviceUuid> all = gather(comm, uuid);
  const std::int64_t beside = std::count(all.begin(), all.end(), uuid);
  together(comm, [&] {
    mine.room = std::max<std::int64_t>(
        1, std::int64_t{kernels.blocks_per_processor()} * context.processors() / beside);
  });
  mine.channels =
      options.channels != 0 ? options.channels : std::min<std::int64_t>(kMostChannels, mine.room);
  const std::vector<ChannelRequest> requests = gather(comm, mine);
  std::int64_t least = mine.channels;
  for (std::size_t rank = 0; rank < requests.size(); ++rank) {
    const ChannelRequest& request = requests[rank];
    if (request.channels < 1 || request.channels > request.room) {
      refuse("rank " + std::to_string(rank) + " requests " + std::to_string(request.channels) +
             " channels, but its device has room for " + std::to_string(request.room) +
             " per rank\nrequest fewer, or leave DeviceOptions::channels unset");
    }
    if (request.scratch != mine.scratch) {
      refuse(
          "rank " + std::to_string(rank) +
          " has different scratch_bytes\ngive all ranks of a device group the same scratch_bytes");
    }
    least = std::min(least, request.channels);
  }
  return static_cast<std::uint32_t>(least);
}

Communicator& checked(Communicator& comm) {
  if (comm.hosts() != 1) {
    refuse("the ranks of a device group are on " + std::to_string(comm.hosts()) +
           " hosts\nsplit the communicator by host, and use its own calls between hosts");
  }
  if (comm.size() > kMaxRanks) {
    refuse("a device group of " + std::to_string(comm.size()) + " ranks\nat most " +
           std::to_string(kMaxRanks) + " are possible");
  }
  return comm;
}

}  // namespace
}  // namespace device

namespace detail {

using namespace device;

class DeviceState {
 public:
  DeviceState(Communicator& comm, const DeviceOptions& options);
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;
  ~DeviceState() { leave(-1); }
  void leave(int timeout_ms);

  void run(const Call& call, void* stream);
  void* allocate(std::size_t bytes);
  void set_timeout(int timeout_ms);
  void check() const;
  void synchronize(void* stream, int timeout_ms) const;

 private:
  static std::optional<std::uint64_t> id_of(void* stream);
  Launch common() const;
  CallShape key_of(const Call& call, bool direct, bool captured) const;
  const Launch& plan(const CallShape& kind);
  void wait_for_latest() const;
  void destroy_events();

  // A device with its kernels.
  struct Device {
    explicit Device(int number) : context(number), kernels(context) {}
    Context context;
    Kernels kernels;
  };
  static std::unique_ptr<Device> open(Communicator& comm, int number);

  Communicator comm_;  // separate, so that no other calls interfere with the group's calls
  std::unique_ptr<Device> device_;
  Context& context_;
  std::uint32_t channels_;
  SharedMemory memory_;
  std::unique_ptr<HostWords> words_ = nullptr;
  std::unique_ptr<Plans> plans_ = nullptr;
  // The latest operation outside captures, or in a capture.
  struct Latest {
    void* event = nullptr;
    std::optional<std::uint64_t> stream = {};  // from id_of()
    bool is_there = false;
    std::uint64_t capture = 0;  // id of its capture
  };
  Latest latest_;
  Latest captured_;
  bool has_left_ = false;
  std::unique_ptr<Watchdog> watchdog_ = nullptr;
};

DeviceState::DeviceState(Communicator& comm, const DeviceOptions& options)
    : comm_(checked(comm).split(0, comm.rank())),
      device_(open(comm_, options.device)),
      context_(device_->context),
      channels_(agree_on_channels(comm_, options, context_, device_->kernels)),
      memory_([&] {
        const InContext here(context_);
        return SharedMemory(comm_, context_, channels_, options.scratch_bytes);
      }()) {
  const InContext here(context_);
  try {
    // together() ends on all ranks, so no kernel starts before this rank's memory exists.
    together(comm_, [&] {
      words_ = std::make_unique<HostWords>(context_, channels_);
      plans_ = std::make_unique<Plans>(context_, common(), options.scratch_bytes);
      check_cuda(cuda_driver().cuEventCreate(&latest_.event, kNoTiming), "cuEventCreate");
      check_cuda(cuda_driver().cuEventCreate(&captured_.event, kNoTiming), "cuEventCreate");
      watchdog_ = std::make_unique<Watchdog>(
          comm_, *words_, channels_,
          options.timeout_ms < 0 ? kDefaultTimeoutMs : options.timeout_ms);
    });
  } catch (...) {
    destroy_events();
    throw;
  }
}

std::unique_ptr<DeviceState::Device> DeviceState::open(Communicator& comm, int number) {
  std::unique_ptr<Device> device;
  together(comm, [&] { device = std::make_unique<Device>(number); });
  return device;
}

void DeviceState::leave(int timeout_ms) {
  if (has_left_) {
    return;
  }
  has_left_ = true;
  const Call others_leave{.collective = Collective::barrier, .timeout_ms = timeout_ms};
  try {
    const InContext here(context_);
    wait_for_latest();
    std::atomic_ref(*words_->stop()).store(1);
    if (latest_.is_there) {
      while (cuda_driver().cuEventQuery(latest_.event) == cuda::kNotReady) {
        std::this_thread::sleep_for(kSleep);
      }
    }
    destroy_events();
    if (watchdog_->ended()) {
      // Kernels of other ranks may still access this memory. They have been told to stop as well,
      // so give them time.
      std::this_thread::sleep_for(kUntilOthersStop);
    } else {
      comm_.run(others_leave);  // now no rank accesses this memory
      context_.unmap();
      comm_.run(others_leave);  // now no rank maps this memory, so its owner may free it
    }
  } catch (const Error&) {
    // If a rank does not arrive, its world has ended and its kernels have stopped.
  }
}

// Returns an id that is unique among all streams, unlike the handle, which the driver reuses.
// Returns nullopt if the driver does not provide ids. REQUIRES: the stream is not capturing.
std::optional<std::uint64_t> DeviceState::id_of(void* stream) {
  std::uint64_t id = 0;
  return cuda_driver().cuStreamGetId(stream, &id) == 0 ? std::optional(id) : std::nullopt;
}

Launch DeviceState::common() const {
  Launch launch;
  std::copy(memory_.arenas().begin(), memory_.arenas().end(), launch.arenas);
  launch.arena = memory_.layout();
  launch.shifts = memory_.shifts();
  launch.rank = static_cast<std::uint32_t>(comm_.rank());
  launch.ranks = static_cast<std::uint32_t>(comm_.size());
  launch.channels = channels_;
  launch.stop = words_->stop();
  launch.status = words_->status();
  return launch;
}

void DeviceState::destroy_events() {
  for (Latest* const latest : {&latest_, &captured_}) {
    if (latest->event != nullptr) {
      cuda_driver().cuEventDestroy_v2(std::exchange(latest->event, nullptr));
    }
  }
}

// Waits until the latest operation has completed or the group has ended.
void DeviceState::wait_for_latest() const {
  while (latest_.is_there && !watchdog_->ended() &&
         cuda_driver().cuEventQuery(latest_.event) == cuda::kNotReady) {
    std::this_thread::sleep_for(kSleep);
  }
}

void DeviceState::check() const {
  if (const std::optional<Error> why = watchdog_->ended()) {
    throw *why;
  }
}

void DeviceState::synchronize(void* stream, int timeout_ms) const {
  const InContext here(context_);
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    const int error = cuda_driver().cuStreamQuery(stream);
    if (error != cuda::kNotReady) {
      check();
      check_cuda(error, "cuStreamQuery");
      return;
    }
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (timeout_ms != 0 && waited > std::chrono::milliseconds(timeout_ms)) {
      check();
      throw Error(ErrorCode::timeout, "the stream is not done after " + std::to_string(timeout_ms) +
                                          " ms\nits work continues; wait again, or call abort()");
    }
    if (waited > kSpin) {
      std::this_thread::sleep_for(kSleep);
    }
  }
}

void DeviceState::set_timeout(int timeout_ms) {
  if (timeout_ms < 0) {
    throw Error(ErrorCode::usage, "a limit of " + std::to_string(timeout_ms) +
                                      " ms for device groups\ngive 0 for no limit, or more");
  }
  watchdog_->set_limit(timeout_ms);
}

void* DeviceState::allocate(std::size_t bytes) {
  check();
  const InContext here(context_);
  return memory_.allocate(bytes);
}

CallShape DeviceState::key_of(const Call& call, bool direct, bool captured) const {
  const bool by_blocks = is_v_form(call.collective);
  // All ranks must agree on in_place. A rank without an input cannot tell whether the call is in
  // place, so only collectives in which every rank has an input can be in place. In a reduce, only
  // the root could be in place; the flat algorithm supports this anyway, because it reads each
  // element before writing it (check_call()). A single rank with premul_sum still needs a pass that
  // multiplies.
  const bool alone = comm_.size() == 1 && call.reduction.op == ReduceOp::premul_sum;
  const bool in_place = cut_of(call.collective) == VectorCut::none && moves_data(call.collective) &&
                        call.collective != Collective::reduce && !alone &&
                        (call.in == call.out || call.collective == Collective::broadcast);
  return {.collective = call.collective,
          .dtype = call.dtype,
          .op = reduces(call.collective) ? kernel_op(call.dtype, call.reduction.op) : ReduceOp::sum,
          .count = by_blocks || !moves_data(call.collective) ? 0 : call.count,
          .root = is_rooted(call.collective) ? call.root : 0,
          .in_place = in_place,
          .direct = direct,
          .captured = captured,
          .algorithm = std::string(call.algorithm)};
}

const Launch& DeviceState::plan(const CallShape& kind) {
  if (const Launch* const known = plans_->find(kind)) {
    return *known;
  }
  if (!kind.captured && plans_->is_full()) {
    wait_for_latest();
    check();
  }
  return plans_->add(kind);
}

void DeviceState::run(const Call& call, void* stream) {
  check();
  check_call(call, comm_.rank(), comm_.size());
  const InContext here(context_);
  const Residence in = residence_of(call.in, context_.number());
  const Residence out = residence_of(call.out, context_.number());
  check_buffers(in, out, context_, comm_.rank());
  const engine::Extent extent = extent_of(call, comm_.rank(), comm_.size());
  const std::uint32_t in_region = memory_.region_of(call.in, extent.input);
  const std::uint32_t out_region = memory_.region_of(call.out, extent.output);
  const bool has_none = call.in == nullptr && call.out == nullptr;  // no block has elements
  const bool in_regions =
      (call.in == nullptr || in_region != 0) && (call.out == nullptr || out_region != 0);
  const bool direct = memory_.one_process()
                          ? memory_.one_device() || (in.for_peers && out.for_peers)
                          : (has_none ? memory_.has_regions() : in_regions);
  const CudaDriver& driver = cuda_driver();
  int capturing = 0;
  std::uint64_t capture = 0;
  check_cuda(driver.cuStreamGetCaptureInfo(stream, &capturing, &capture), "cuStreamGetCaptureInfo");
  const CallShape kind = key_of(call, direct, capturing != 0);
  Launch launch = plan(kind);
  launch.input = reinterpret_cast<std::uint64_t>(kind.in_place ? call.out : call.in);
  launch.output = reinterpret_cast<std::uint64_t>(call.out);
  if (!memory_.one_process()) {
    launch.input_region = kind.in_place ? out_region : in_region;
    launch.output_region = out_region;
  }
  if (launch.has_blocks != 0) {
    put_blocks(call, comm_.rank(), comm_.size(), launch);
  }
  launch.factor = call.reduction.factor;
  if (call.reduction.op == ReduceOp::premul_sum) {
    launch.signature = mix(launch.signature ^ std::bit_cast<std::uint64_t>(launch.factor));
  }
  // The order within a graph is independent of calls outside it.
  Latest& latest = capturing == 0 ? latest_ : captured_;
  const bool is_before = latest.is_there && (capturing == 0 || latest.capture == capture);
  const auto id = capturing == 0 ? id_of(stream) : std::nullopt;
  if (is_before && (!id || id != latest.stream)) {
    check_cuda(driver.cuStreamWaitEvent(stream, latest.event, 0), "cuStreamWaitEvent");
  }
  void* arguments[] = {&launch};
  const int error = driver.cuLaunchKernel(device_->kernels.of(call.dtype), launch.channels, 1, 1,
                                          kThreads, 1, 1, 0, stream, arguments, nullptr);
  if (error != 0) {
    check_stream(stream, context_, comm_.rank());
  }
  check_cuda(error, "cuLaunchKernel");
  check_cuda(driver.cuEventRecord(latest.event, stream), "cuEventRecord");
  latest = {.event = latest.event, .stream = id, .is_there = true, .capture = capture};
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
void DeviceGroup::close(int timeout_ms) {
  state_->leave(timeout_ms);
  state_.reset();
}
void DeviceGroup::set_timeout(int timeout_ms) {
  state_->set_timeout(timeout_ms);
}
void DeviceGroup::check() const {
  state_->check();
}
void DeviceGroup::synchronize(DeviceStream stream, int timeout_ms) const {
  state_->synchronize(stream, timeout_ms);
}

}  // namespace unisono
