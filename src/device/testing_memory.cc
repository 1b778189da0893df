#include "device/testing_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include "base/env.h"

namespace unisono::device::fake {
namespace {

constexpr int kMostDevices = 8;
constexpr std::size_t kPage = 4096;

struct Handle {  // stored in the 64 bytes of a CUipcMemHandle
  std::int64_t process = 0;
  std::uint64_t bytes = 0;
  std::int32_t file = -1;
  std::int32_t device = 0;
};

// Leaves unused addresses after the end, so that an overrun does not hit another allocation.
std::size_t with_guard(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage + kPage;
}

bool are_apart(int device, int other) {
  std::istringstream pairs(read_env("FAKE_CUDA_APART").value_or(""));
  const std::string wanted = std::to_string(device) + '>' + std::to_string(other);
  for (std::string pair; std::getline(pairs, pair, ',');) {
    if (pair == wanted) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<int> visible_devices() {
  std::istringstream list(read_env("FAKE_CUDA_DEVICES").value_or("0"));
  std::vector<int> devices;
  for (std::string device; std::getline(list, device, ',');) {
    devices.push_back(std::atoi(device.c_str()));
  }
  return devices;
}

Context* primary_context(int number) {
  static auto* const all = [] {
    auto* const contexts = new std::array<Context, kMostDevices>;
    for (int device = 0; device < kMostDevices; ++device) {
      (*contexts)[static_cast<std::size_t>(device)].device = device;
    }
    return contexts;
  }();
  const std::vector<int> devices = visible_devices();
  if (number < 0 || static_cast<std::size_t>(number) >= devices.size()) {
    return nullptr;
  }
  return &all->at(static_cast<std::size_t>(devices[static_cast<std::size_t>(number)]));
}

Context*& set_context() {
  thread_local Context* context = nullptr;
  return context;
}

Context* current_context() {
  if (set_context() != nullptr || read_env("FAKE_CUDA_DEVICES")) {
    return set_context();
  }
  return primary_context(0);
}

Memory& memory() {
  static auto* const one = new Memory;  // streams of an exiting process may still run
  return *one;
}

int Memory::enable_peer(Context& context, const Context& peer) {
  if (are_apart(context.device, peer.device)) {
    return kPeerAccessUnsupported;
  }
  const std::lock_guard lock(mutex_);
  return context.peers.insert(peer.device).second ? 0 : kPeerAccessAlreadyEnabled;
}

void Memory::disable_peers(Context& context) {
  const std::lock_guard lock(mutex_);
  context.peers.clear();
}

int Memory::map(int file, const Mapping& mapping, std::uint64_t* place) {
  const std::size_t whole = with_guard(mapping.bytes);
  void* const room = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED || ::mmap(room, mapping.bytes, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    return kOutOfMemory;
  }
  *place = reinterpret_cast<std::uint64_t>(room);
  const std::lock_guard lock(mutex_);
  mappings_[*place] = mapping;
  return 0;
}

int Memory::allocate(const Context& context, std::size_t bytes, std::uint64_t* place) {
  const int file = ::memfd_create("device", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return kOutOfMemory;
  }
  return map(file, {.bytes = bytes, .file = file, .device = context.device}, place);
}

int Memory::handle_of(std::uint64_t place, IpcHandle* handle) {
  const std::lock_guard lock(mutex_);
  const auto at = mappings_.find(place);
  if (at == mappings_.end() || at->second.opened_by != nullptr) {
    return kInvalidValue;
  }
  const Mapping& mapping = at->second;
  const Handle told{.process = ::getpid(),
                    .bytes = mapping.bytes,
                    .file = mapping.file,
                    .device = mapping.device};
  std::memcpy(handle->bytes, &told, sizeof(told));
  return 0;
}

int Memory::open(const Context& context, const IpcHandle& handle, std::uint64_t* place) {
  Handle told;
  std::memcpy(&told, handle.bytes, sizeof(told));
  if (told.process == ::getpid()) {
    return kInvalidContext;
  }
  if (are_apart(context.device, told.device)) {
    return kPeerAccessUnsupported;
  }
  const std::string name =
      "/proc/" + std::to_string(told.process) + "/fd/" + std::to_string(told.file);
  const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  return file < 0 ? kInvalidValue
                  : map(file,
                        {.bytes = told.bytes,
                         .file = file,
                         .device = told.device,
                         .opened_by = &context},
                        place);
}

int Memory::give_back(std::uint64_t place) {
  {
    const std::lock_guard lock(mutex_);
    auto mapping = mappings_.extract(place);
    if (mapping.empty()) {
      return kInvalidValue;
    }
    freed_.insert(std::move(mapping));
  }
  unmap_freed();
  return 0;
}

void Memory::unmap_freed() {
  const std::lock_guard lock(mutex_);
  if (undone_ != 0) {
    return;
  }
  for (const auto& [place, mapping] : freed_) {
    ::munmap(reinterpret_cast<void*>(place), with_guard(mapping.bytes));
    ::close(mapping.file);
  }
  freed_.clear();
}

void Memory::work_ends() {
  if (--undone_ == 0) {
    unmap_freed();
  }
}

const Memory::Mapping* Memory::find(std::uint64_t place) const {
  const auto after = mappings_.upper_bound(place);
  if (after == mappings_.begin()) {
    return nullptr;
  }
  const auto& [begin, mapping] = *std::prev(after);
  return place < begin + mapping.bytes ? &mapping : nullptr;
}

void Memory::put_in_pool(std::uint64_t place) {
  const std::lock_guard lock(mutex_);
  mappings_.at(place).in_pool = true;
}

bool Memory::is_in_pool(std::uint64_t place) {
  const std::lock_guard lock(mutex_);
  const Mapping* const mapping = find(place);
  return mapping != nullptr && mapping->in_pool;
}

int Memory::device_of(std::uint64_t place) {
  const std::lock_guard lock(mutex_);
  const Mapping* const mapping = find(place);
  return mapping == nullptr ? -1 : mapping->device;
}

bool Memory::may_use(const Context& context, const Mapping& mapping) {
  if (mapping.opened_by != nullptr) {
    return mapping.opened_by == &context;
  }
  return mapping.device == context.device ||
         (!mapping.in_pool && context.peers.contains(mapping.device));
}

void Memory::check_use(const Context& context, const void* data, const char* what) {
  const std::lock_guard lock(mutex_);
  const Mapping* const mapping = find(reinterpret_cast<std::uint64_t>(data));
  if (mapping == nullptr || may_use(context, *mapping)) {
    return;
  }
  std::fprintf(stderr,
               "the driver without a GPU: a kernel of device %d uses %s in the memory of device "
               "%d, which its context does not reach\n",
               context.device, what, mapping->device);
  std::abort();
}

int Memory::size() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(mappings_.size());
}

}  // namespace unisono::device::fake
