// The transport between ranks on one host: lanes of cells in a group's segment, slots of the ranks'
// pools, and registered memory.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/shm/distance.h"
#include "transport/shm/event_counts.h"
#include "transport/shm/lane.h"
#include "transport/shm/pool.h"
#include "transport/shm/regions.h"
#include "transport/transport.h"

namespace unisono::shm {

class ShmTransport;

// The transports of one rank. An idle lane keeps the slots of its last messages; if the rank needs
// slots, it takes them back.
class TransportRegistry {
 public:
  void add(ShmTransport* transport);
  void remove(ShmTransport* transport);
  // Takes back slots of all transports. This is the slow path, for when no used slot is free.
  void reclaim() noexcept;
  // Makes a transport the current taker of slots, and takes back those of the previous one.
  void make_current(ShmTransport* transport) noexcept {
    if (latest_.load(std::memory_order_relaxed) != transport) {
      change_current(transport);
    }
  }

 private:
  void change_current(ShmTransport* transport) noexcept;
  std::mutex changing_;  // guards transports_, and that those in it live
  std::vector<ShmTransport*> transports_;
  std::atomic<ShmTransport*> latest_ = nullptr;
};

// State shared by the groups of one rank. All references must outlive the transports.
struct ShmContext {
  int rank = 0;  // world rank
  std::byte* world = nullptr;
  EventCounts* event_counts = nullptr;
  Pool* pool = nullptr;  // of this rank
  Regions* regions = nullptr;
  TransportRegistry* registry = nullptr;
  std::vector<std::byte*> pools;   // by world rank
  std::vector<bool> same_process;  // by world rank
  // By world rank: the process, and whether it may read this rank's memory (process_vm_readv).
  std::vector<int> pids;
  std::vector<bool> can_fetch;
};

class ShmTransport final : public transport::Transport {
 public:
  // With `use` 0 these are the lanes of collectives; with 1 those of send and recv, without
  // multicast.
  ShmTransport(const ShmContext& context, std::byte* lanes, std::vector<int> members, int rank,
               int use);

  ~ShmTransport() override { context_.registry->remove(this); }
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;

  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return ranks_; }
  const transport::Limits& limits() const noexcept override { return limits_; }
  bool peek(int lane, transport::Incoming& message) noexcept override;
  void release(int lane) noexcept override;
  bool send(int lane, const void* data, std::size_t bytes,
            std::uint64_t signature) noexcept override;
  std::byte* reserve(int lane, std::size_t bytes) noexcept override;
  void commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept override;
  void fill(int lane, std::byte* room, const void* data, std::size_t bytes) noexcept override;
  kernels::Store store(int lane, std::size_t bytes) const noexcept override {
    return bytes >= Distance::kLeastBytes && out(lane).distance.far() ? kernels::Store::streaming
                                                                      : kernels::Store::cached;
  }
  std::size_t shareable_bytes(int lane, const void* data, std::size_t bytes) noexcept override;
  bool share(int lane, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override;
  bool can_offer(int lane, const void* data, std::size_t bytes) noexcept override;
  bool offer(int lane, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override;
  std::size_t fetch(int lane, std::size_t offset, void* target,
                    std::size_t bytes) noexcept override;
  transport::Mark mark(int lane) const noexcept override { return out(lane).writer.position(); }
  bool drained(int lane, transport::Mark mark) noexcept override {
    return out(lane).writer.drained(mark);
  }
  int slowest_reader(int lane) noexcept override;
  bool reclaim() noexcept override;
  void reclaim_from_outside() noexcept;

 private:
  struct Out {
    explicit Out(LaneCell* cells, std::vector<const Head*> heads)
        : writer(cells, std::move(heads)) {}
    LaneWriter writer;
    Distance distance;
    bool may_offer = false;            // all readers can fetch
    std::uint32_t slot = Pool::kNone;  // reserved, not yet committed
    std::byte* room = nullptr;         // in the slot
    std::size_t room_bytes = 0;
    alignas(kLine) std::byte staged[kInlineBytes] = {};
  };
  struct In {
    LaneReader reader;
    int from = 0;               // world rank
    std::uint32_t cells = 0;    // of the message that peek() returned
    bool refers = false;        // it is a reference, and the writer may wait for its release
    std::uint64_t offered = 0;  // the address of an offer in the writer's process
    alignas(kLine) std::byte gathered[kInlineBytes] = {};
  };
  Out& out(int lane) noexcept { return out_[static_cast<std::size_t>(lane)]; }
  const Out& out(int lane) const noexcept { return out_[static_cast<std::size_t>(lane)]; }
  // Offers data only up to this length. For data far larger than the caches, slots are as fast and
  // need less kernel time.
  static constexpr std::size_t kMostOffer = std::size_t{8} << 20;
  void add_multicast_lanes(std::byte* lanes, const LaneLayout& layout);
  void wake_readers(int lane) noexcept;
  bool take_slot(Out& to) noexcept;
  bool resolve(In& in, const LaneCell& cell, transport::Incoming& message) noexcept;

  const ShmContext& context_;
  std::vector<int> members_;  // world rank of each rank of the group
  int rank_;
  int ranks_;
  transport::Limits limits_;
  std::deque<Out> out_;  // a lane does not move
  std::vector<In> in_;
};

}  // namespace unisono::shm
