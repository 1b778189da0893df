#include "device/shared_memory.h"

#include <unistd.h>

#include <limits>
#include <string>

#include "device/gather.h"
#include "unisono/error.hpp"

namespace unisono::device {
namespace {

constexpr std::uint32_t kMaxRegions = 256;

struct Introduction {
  std::int64_t process = 0;
  std::uint64_t base = 0;
  std::int64_t device = 0;
  IpcHandle handle = {};
};

struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  IpcHandle handle = {};
};

constexpr std::size_t kMostBytes = std::numeric_limits<std::size_t>::max() / 2;

std::size_t round_up(std::size_t bytes) {
  if (bytes > kMostBytes) {
    throw Error(ErrorCode::resource,
                std::to_string(bytes) + " bytes are more than any device has\nrequest fewer");
  }
  return (bytes + 255) / 256 * 256;
}

}  // namespace

SharedMemory::SharedMemory(Communicator& comm, Context& context, std::uint32_t channels,
                           std::size_t scratch_bytes)
    : comm_(comm), context_(context) {
  const auto n = static_cast<std::size_t>(comm.size());
  layout_.records = round_up(channels * n * sizeof(std::uint64_t));
  layout_.epochs = layout_.records + round_up(channels * 2 * n * sizeof(Record));
  layout_.scratch = layout_.epochs + round_up(channels * sizeof(std::uint64_t));
  Introduction mine{.process = ::getpid(), .device = context.number()};
  for (const Introduction& one : gather(comm, mine)) {
    peers_.push_back({.same_process = one.process == mine.process, .device = one.device});
    one_process_ = one_process_ && peers_.back().same_process;
    one_device_ = one_device_ && one.device == mine.device;
  }
  together(comm, [&] {
    mine.base = context.allocate(layout_.scratch + round_up(scratch_bytes));
    shifts_ = context.allocate(kMaxRegions * n * sizeof(std::uint64_t));
    mine.handle = handle_of(mine.base);
  });
  const std::vector<Introduction> all = gather(comm, mine);
  together(comm, [&] {
    for (std::size_t rank = 0; rank < n; ++rank) {
      if (peers_[rank].same_process && peers_[rank].device != context.number()) {
        reach(rank, [&] { context.enable_peer(static_cast<int>(peers_[rank].device)); });
      }
      arenas_.push_back(place_here(rank, all[rank].base, all[rank].handle));
    }
  });
}

// Returns the handle through which other processes reach the memory; empty if all ranks are in one
// process.
IpcHandle SharedMemory::handle_of(std::uint64_t base) const {
  IpcHandle handle = {};
  if (!one_process_) {
    check_cuda(cuda_driver().cuIpcGetMemHandle(&handle, base), "cuIpcGetMemHandle");
  }
  return handle;
}

std::uint64_t SharedMemory::place_here(std::size_t rank, std::uint64_t base,
                                       const IpcHandle& handle) {
  if (peers_[rank].same_process) {
    return base;
  }
  std::uint64_t place = 0;
  reach(rank, [&] { place = context_.map(handle); });
  return place;
}

// Runs `step`, which makes the memory of `rank` accessible. On failure, the error names both
// devices.
template <class Step>
void SharedMemory::reach(std::size_t rank, const Step& step) const {
  try {
    step();
  } catch (const Error& why) {
    if (why.code() == ErrorCode::resource) {
      throw;
    }
    throw Error(ErrorCode::config,
                "device " + std::to_string(context_.number()) + " of rank " +
                    std::to_string(comm_.rank()) + " cannot reach the memory of device " +
                    std::to_string(peers_[rank].device) + " of rank " + std::to_string(rank) +
                    ": " + std::string(why.summary()) +
                    "\ncheck nvidia-smi topo -p2p r; give the ranks devices that reach each other, "
                    "or use the communicator on host memory");
  }
}

void* SharedMemory::allocate(std::size_t bytes) {
  if (regions_.size() + 1 >= kMaxRegions) {
    throw Error(ErrorCode::usage,
                "more than " + std::to_string(kMaxRegions - 1) +
                    " allocations of a device group\nallocate larger blocks, and divide them");
  }
  Allocation mine{.bytes = bytes};
  together(comm_, [&] {
    mine.base = context_.allocate(round_up(bytes));
    mine.handle = handle_of(mine.base);
  });
  const std::vector<Allocation> places = gather(comm_, mine);
  together(comm_, [&] {
    std::vector<std::uint64_t> row;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      const Allocation& place = places[rank];
      row.push_back(place_here(rank, place.base, place.handle) - place.base);
    }
    context_.upload(shifts_ + (regions_.size() + 1) * row.size() * sizeof(row[0]), row.data(),
                    row.size() * sizeof(row[0]));
  });
  regions_.push_back({.base = mine.base, .bytes = bytes});
  return reinterpret_cast<void*>(mine.base);
}

std::uint32_t SharedMemory::region_of(const void* data, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uint64_t>(data);
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const Region& region = regions_[i];
    if (at >= region.base && at - region.base <= region.bytes &&
        bytes <= region.bytes - (at - region.base)) {
      return static_cast<std::uint32_t>(i + 1);
    }
  }
  return 0;
}

}  // namespace unisono::device
