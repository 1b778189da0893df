#include "symmetric_memory.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>
#include <utility>
#include <vector>

#include "backend.h"
#include "bootstrap/process.h"
#include "common/signals.h"
#include "common/without_python.h"
#include "convert.h"
#include "meeting.h"
#include "meeting_store.h"
#include "peer_memory.h"
#include "symmetric_signals.h"

namespace unisono_torch {
namespace {

namespace symmetric = c10d::symmetric_memory;
using unisono_signals::WithoutPython;

template <typename Call>
auto in_torchs_words(const Call& call) {
  try {
    return call();
  } catch (const unisono::Error& error) {
    std::rethrow_exception(to_torch(error));
  }
}

// Memory and processes of all ranks in one rendezvous.
struct Met {
  int rank = 0;
  std::vector<int> in_job;
  std::vector<std::shared_ptr<PeerMemory>> memory;  // by rank
  std::vector<PeerProcess> processes;
};

class Handle final : public symmetric::SymmetricMemory {
 public:
  explicit Handle(Met met)
      : met_(std::move(met)), signals_(met_.rank, signal_ranks(), own().pad_bytes()) {
    for (const auto& memory : met_.memory) {
      buffers_.push_back(memory->buffer());
      pads_.push_back(memory->pad());
    }
  }

  std::vector<void*> get_buffer_ptrs() override { return buffers_; }
  std::vector<void*> get_signal_pad_ptrs() override { return pads_; }
  void** get_buffer_ptrs_dev() override { return buffers_.data(); }
  void** get_signal_pad_ptrs_dev() override { return pads_.data(); }
  size_t get_buffer_size() override { return own().bytes(); }
  size_t get_offset() override { return 0; }
  bool has_multicast_support() override { return false; }
  void* get_multicast_ptr() override { return nullptr; }
  void barrier(int channel, size_t timeout_ms) override {
    const WithoutPython unlocked;
    in_torchs_words([&] { signals_.barrier(channel, timeout_ms); });
  }
  void put_signal(int to, int channel, size_t timeout_ms) override {
    const WithoutPython unlocked;
    in_torchs_words([&] { signals_.put(to, channel, timeout_ms); });
  }
  void wait_signal(int from, int channel, size_t timeout_ms) override {
    const WithoutPython unlocked;
    in_torchs_words([&] { signals_.wait(from, channel, timeout_ms); });
  }
  int get_rank() override { return met_.rank; }
  int get_world_size() override { return static_cast<int>(met_.memory.size()); }
  c10::Device get_device() override { return at::kCPU; }
  const std::vector<int>& get_rank_to_global_rank() override { return met_.in_job; }
  int* get_rank_to_global_rank_dev() override { return met_.in_job.data(); }
  bool world_within_direct_access() override { return true; }

 private:
  const PeerMemory& own() const { return *met_.memory[static_cast<std::size_t>(met_.rank)]; }
  std::vector<SignalRank> signal_ranks() const {
    std::vector<SignalRank> ranks;
    for (std::size_t rank = 0; rank < met_.memory.size(); ++rank) {
      const PeerProcess& process = met_.processes[rank];
      ranks.push_back(
          {.pad = met_.memory[rank]->pad(),
           .end = [&process] { return process.end(); },
           .is_stopped = [&process] { return unisono::comm::is_stopped(process.pid); }});
    }
    return ranks;
  }

  Met met_;
  Signals signals_;
  std::vector<void*> buffers_;
  std::vector<void*> pads_;
};

// A rank's announcement of its memory.
struct Announcement {
  std::string host;
  std::string endpoint;
  std::size_t bytes = 0;
  std::size_t pad_bytes = 0;
};

std::string announce(const DescriptorExchange& exchange, const PeerMemory& memory) {
  std::ostringstream line;
  line << host_identity() << ' ' << exchange.name() << ' ' << memory.bytes() << ' '
       << memory.pad_bytes();
  return line.str();
}

Announcement read_announcement(const std::string& text) {
  std::istringstream in(text);
  Announcement line;
  in >> line.host >> line.endpoint >> line.bytes >> line.pad_bytes;
  TORCH_CHECK(!in.fail(), "unisono: the store has invalid data instead of a rank's symmetric ",
              "memory: \"", text, "\"");
  return line;
}

void check_equal(const std::vector<Announcement>& lines, int64_t number) {
  const auto refuse = [](const std::string& what) {
    throw c10::DistBackendError("unisono: " + what);
  };
  for (std::size_t rank = 1; rank < lines.size(); ++rank) {
    const std::string other = "rank " + std::to_string(rank);
    if (lines[rank].host != lines[0].host) {
      refuse("symmetric memory needs ranks of one host and one user, but rank 0 and " + other +
             " differ\nmake a group of the ranks of each host");
    }
    if (lines[rank].bytes != lines[0].bytes) {
      refuse("rendezvous " + std::to_string(number) + " of this group: rank 0 has " +
             std::to_string(lines[0].bytes) + " bytes of symmetric memory, " + other + " has " +
             std::to_string(lines[rank].bytes) +
             "\nallocate the same sizes on all ranks, and call rendezvous() in the same order");
    }
    if (lines[rank].pad_bytes != lines[0].pad_bytes) {
      refuse("the signal pad of rank 0 has " + std::to_string(lines[0].pad_bytes) +
             " bytes, that of " + other + " has " + std::to_string(lines[rank].pad_bytes) +
             "\ncall set_signal_pad_size() with the same size on all ranks");
    }
  }
}

// Participants of a rendezvous: a process group, or the group named by set_group_info().
struct Group {
  int rank = 0;
  int size = 0;
  c10::intrusive_ptr<c10d::Store> store = {};
  std::vector<int> in_job = {};
  std::chrono::milliseconds timeout = kBackendDefaultTimeout;
  c10::intrusive_ptr<c10d::Backend> backend = {};  // if it is unisono's; otherwise nullptr
};

c10::intrusive_ptr<c10d::ProcessGroup> process_group(const std::string& name) {
  try {
    return c10d::resolve_process_group(name);
  } catch (const c10::Error&) {
    return nullptr;
  }
}

Group group_named(const std::string& name) {
  const auto from_torch = process_group(name);
  if (from_torch == nullptr) {
    const symmetric::GroupInfo& info = symmetric::get_group_info(name);
    return {.rank = info.rank,
            .size = info.world_size,
            .store = info.store,
            .timeout = info.store->getTimeout()};
  }
  Group group{.rank = from_torch->getRank(),
              .size = from_torch->getSize(),
              .store = from_torch->getStore(),
              .timeout = from_torch->getStore()->getTimeout()};
  try {
    const auto backend = from_torch->getBackend(at::kCPU);
    group.timeout = backend->getBackendOptions()->timeout;
    group.backend = dynamic_cast<Backend*>(backend.get()) != nullptr ? backend : nullptr;
    const auto& members = backend->getBackendOptions()->global_ranks_in_group;
    group.in_job.assign(members.begin(), members.end());
  } catch (const c10::Error&) {  // NOLINT(bugprone-empty-catch): the group has only devices
  }
  return group;
}

Met meet_with(const Group& group, const std::shared_ptr<PeerMemory>& own) {
  // The store counts, so that numbers live as long as the group.
  const auto store = c10::make_intrusive<c10d::PrefixStore>("unisono/symmetric", group.store);
  const int64_t number = store->add("count/" + std::to_string(group.rank), 1);
  const auto deadline = unisono::Deadline::of_timeout(static_cast<int>(
      std::min<std::int64_t>(group.timeout.count(), std::numeric_limits<int>::max())));
  const auto look = [&group] {
    unisono_signals::throw_if_interrupted();
    auto* ours = dynamic_cast<Backend*>(group.backend.get());
    if (const auto failure = ours == nullptr ? nullptr : ours->failure()) {
      std::rethrow_exception(failure);
    }
  };
  DescriptorExchange exchange;
  std::vector<Announcement> lines;
  std::vector<std::string> endpoints;
  for (const std::string& text :
       tell_all(*store, std::to_string(number) + "/", group.rank, group.size,
                announce(exchange, *own), group.timeout, look,
                {.what = "rendezvous " + std::to_string(number) + " of symmetric memory (" +
                         std::to_string(own->bytes()) + " bytes)",
                 .question = "check that every rank of the group calls it"})) {
    lines.push_back(read_announcement(text));
    endpoints.push_back(lines.back().endpoint);
  }
  check_equal(lines, number);
  Met met{.rank = group.rank, .in_job = group.in_job, .memory = {}, .processes = {}};
  auto peers = exchange.trade(group.rank, endpoints, own->descriptor(),
                              {.deadline = deadline, .look = look});
  for (int rank = 0; rank < group.size; ++rank) {
    auto& peer = peers[static_cast<std::size_t>(rank)];
    met.memory.push_back(
        rank == group.rank
            ? own
            : std::make_shared<PeerMemory>(std::move(peer.memory), own->bytes(), own->pad_bytes()));
    met.processes.push_back(std::move(peer.process));
  }
  if (met.in_job.empty()) {
    for (int rank = 0; rank < group.size; ++rank) {
      met.in_job.push_back(rank);
    }
  }
  return met;
}

class Allocator final : public symmetric::SymmetricMemoryAllocator {
 public:
  void* alloc(size_t bytes, int /*device*/, const std::optional<std::string>& group) override {
    return in_torchs_words([&] {
      auto memory = std::make_shared<PeerMemory>(bytes, symmetric::get_signal_pad_size());
      void* const at = memory->buffer();
      const std::lock_guard lock(mutex_);
      all_[at] = {.memory = std::move(memory), .group = group, .handles = {}};
      return at;
    });
  }
  void free(void* at) override {
    const std::lock_guard lock(mutex_);
    all_.erase(at);
  }
  size_t get_alloc_size(void* at) override {
    const std::lock_guard lock(mutex_);
    return find(at).memory->bytes();
  }
  c10::intrusive_ptr<symmetric::SymmetricMemory> rendezvous(
      void* at, const std::optional<std::string>& group) override {
    const WithoutPython unlocked;
    std::shared_ptr<PeerMemory> memory;
    std::string name;
    {
      const std::lock_guard lock(mutex_);
      const Allocation& allocation = find(at);
      TORCH_CHECK_VALUE(group.has_value() || allocation.group.has_value(),
                        "unisono: rendezvous of symmetric memory has no group; name it here or ",
                        "where the memory is allocated");
      name = group.has_value() ? *group : *allocation.group;
      if (const auto known = allocation.handles.find(name); known != allocation.handles.end()) {
        return known->second;
      }
      memory = allocation.memory;
    }
    auto handle = in_torchs_words(
        [&] { return c10::make_intrusive<Handle>(meet_with(group_named(name), memory)); });
    const std::lock_guard lock(mutex_);
    if (const auto found = all_.find(at); found != all_.end()) {
      found->second.handles[name] = handle;
    }
    return handle;
  }
  bool has_multicast_support(int /*device*/) override { return false; }
  c10::DeviceType supported_device_type() override { return at::kCPU; }
  std::string name() override { return "UNISONO"; }
  bool has_allocation(void* at) override {
    const std::lock_guard lock(mutex_);
    return all_.contains(at);
  }

 private:
  struct Allocation {
    std::shared_ptr<PeerMemory> memory;
    std::optional<std::string> group;
    std::map<std::string, c10::intrusive_ptr<symmetric::SymmetricMemory>> handles;
  };
  const Allocation& find(void* at) const {
    const auto found = all_.find(at);
    TORCH_CHECK_VALUE(found != all_.end(),
                      "unisono: this tensor is not in symmetric memory; allocate it with ",
                      "torch.distributed._symmetric_memory.empty(..., device=\"cpu\")");
    return found->second;
  }

  std::mutex mutex_;  // guards the next member
  std::map<void*, Allocation> all_;
};

}  // namespace

void register_symmetric_memory() {
  static const auto allocator = [] {
    auto made = c10::make_intrusive<Allocator>();
    symmetric::register_availability(made->name(), made);
    return made;
  }();
  if (!symmetric::has_allocator(at::kCPU)) {
    symmetric::register_allocator(at::kCPU, allocator);
  }
}

}  // namespace unisono_torch
