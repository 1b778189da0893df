#include "comm/region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "bootstrap/local_host.h"
#include "comm/mappings.h"
#include "comm/world.h"
#include "engine/call_checks.h"
#include "membership/watch.h"

namespace unisono::detail {
namespace {

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t whole_pages(std::size_t bytes) {
  const std::size_t page = page_bytes();
  return (bytes + page - 1) / page * page;
}

[[noreturn]] void fail(const char* what, std::size_t bytes) {
  throw Error(ErrorCode::resource, std::string(what) + " of " + std::to_string(bytes) +
                                       " bytes failed: " + std::strerror(errno) +
                                       "\ncheck the limits on memory (ulimit -v, cgroup)");
}

// Turns the pages into ordinary memory with the same contents at the same address, one piece at a
// time, so that each copy stays in a cache. mremap() would avoid the second copy; but memory hooks
// of other libraries (UCX 1.13) pass on only four of its arguments, and so lose the target address.
void give_back(std::byte* base, std::size_t bytes) noexcept {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  constexpr int kOrdinary = MAP_PRIVATE | MAP_ANONYMOUS;
  void* copy = mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, kOrdinary, -1, 0);
  if (copy == MAP_FAILED) {
    return;  // it stays shared memory, which works as well
  }
  for (std::size_t done = 0; done < bytes; done += kPiece) {
    const std::size_t piece = std::min(kPiece, bytes - done);
    std::memcpy(copy, base + done, piece);
    if (mmap(base + done, piece, PROT_READ | PROT_WRITE, kOrdinary | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
      break;  // the rest stays shared
    }
    std::memcpy(base + done, copy, piece);
  }
  munmap(copy, kPiece);
}

// Returns true if other ranks are threads of this process.
bool has_ranks_beside(comm::World& world) {
  const std::span<const int> here = world.hosts().here();
  return std::any_of(here.begin(), here.end(), [&world](int rank) {
    return rank != world.rank() && world.membership().watch().same_process_as(rank);
  });
}

}  // namespace

RegionState::~RegionState() {
  if (!world->same_process() || base == nullptr) {
    return;  // the child of a fork: the region belongs to the parent, and peers must not be told
  }
  if (number != 0) {
    world->host().regions().remove(number);
  }
  if (adopted) {
    give_back(base, bytes);
  }
  // In a failed world, other threads of this process may still be reading the memory. Other
  // processes are safe, because they have their own mappings (LocalHost::drain_announcements()).
  if (shared != nullptr && world->membership().abort().is_set() && has_ranks_beside(*world)) {
    world->host().memory().process().keep(std::move(shared));
  }
}

std::unique_ptr<RegionState> allocate(const std::shared_ptr<comm::World>& world,
                                      std::size_t bytes) {
  world->check_usable();
  engine::check_size(bytes, "allocate", {.rank = world->rank()});
  auto region = std::make_unique<RegionState>();
  region->world = world;
  region->usable = bytes;
  if (bytes == 0) {
    return region;
  }
  const std::size_t size = whole_pages(bytes);
  if (size < bytes) {
    errno = ENOMEM;
    fail("an allocation", bytes);
  }
  const UniqueFd memory = shm::create_memory("unisono-region", size);
  region->shared = std::make_unique<shm::Mapping>(memory.get(), size);
  region->base = region->shared->data();
  region->bytes = size;
  region->number = world->host().regions().add(region->base, size, memory.get(), region->base);
  return region;
}

std::unique_ptr<RegionState> adopt(const std::shared_ptr<comm::World>& world,
                                   std::span<std::byte> memory) {
  world->check_usable();
  engine::check_size(memory.size(), "register_buffer", {.rank = world->rank()});
  auto region = std::make_unique<RegionState>();
  region->world = world;
  region->adopted = true;
  const std::size_t page = page_bytes();
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = (first + page - 1) / page * page;
  const std::uintptr_t end = (first + memory.size()) / page * page;
  if (memory.data() == nullptr && !memory.empty()) {
    throw Error(ErrorCode::usage, "register_buffer: the buffer is null\npass memory that is mapped",
                {.rank = world->rank()});
  }
  if (end <= begin) {
    return region;  // less than a page: its bytes go through slots
  }
  auto* base = reinterpret_cast<std::byte*>(begin);
  const std::size_t size = end - begin;
  if (world->host().regions().overlaps(base, size)) {
    throw Error(ErrorCode::usage,
                "register_buffer: the memory is already registered\nuse the first registration",
                {.rank = world->rank()});
  }
  if (const std::string why = comm::why_not_adoptable(begin, end); !why.empty()) {
    throw Error(ErrorCode::usage,
                "register_buffer: the memory cannot be adopted: " + why +
                    "\npass ordinary memory (malloc, std::vector), or use allocate()",
                {.rank = world->rank()});
  }
  const UniqueFd shared = shm::create_memory("unisono-region", size);
  // Uses write() instead of a mapping, so that a bad address is an error, not a crash.
  for (std::size_t done = 0; done < size;) {
    const ssize_t wrote = pwrite(shared.get(), base + done, size - done, static_cast<off_t>(done));
    if (wrote <= 0) {
      throw Error(ErrorCode::usage,
                  std::string("register_buffer: the memory cannot be read: ") +
                      std::strerror(errno) + "\npass memory that is mapped",
                  {.rank = world->rank()});
    }
    done += static_cast<std::size_t>(wrote);
  }
  if (has_ranks_beside(*world)) {
    region->shared = std::make_unique<shm::Mapping>(shared.get(), size);
  }
  if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shared.get(), 0) ==
      MAP_FAILED) {
    fail("adopting memory", size);
  }
  region->base = base;
  region->bytes = size;
  region->number = world->host().regions().add(
      base, size, shared.get(), region->shared == nullptr ? base : region->shared->data());
  return region;
}

SharedPlace place_of(comm::World& world, const void* data, std::size_t bytes) {
  world.check_usable();
  const std::optional<shm::SharedRegion> region = world.host().regions().holding(data, bytes);
  if (!region) {
    return {};
  }
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - region->base);
  return {.address = reinterpret_cast<std::uint64_t>(region->in_process + offset),
          .offset = offset,
          .region = region->number};
}

const std::byte* peer_memory(comm::World& world, int rank, const SharedPlace& place,
                             std::size_t bytes) {
  world.check_usable();
  if (rank < 0 || place.region == 0) {
    return nullptr;
  }
  if (rank == world.rank() || world.membership().watch().same_process_as(rank)) {
    return reinterpret_cast<const std::byte*>(place.address);
  }
  if (!world.hosts().is_here(rank)) {
    return nullptr;
  }
  const std::optional<shm::SharedRegion> region =
      world.host().regions().of_peer(world.hosts().local(rank), place.region);
  const bool holds =
      region && place.offset <= region->bytes && bytes <= region->bytes - place.offset;
  return holds ? region->base + place.offset : nullptr;
}

}  // namespace unisono::detail
