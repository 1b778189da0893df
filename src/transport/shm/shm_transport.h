// The transport between ranks of one host: lanes of cells in a group's segment, slots of the ranks'
// pools, registered memory.
#pragma once

#include <memory>
#include <vector>

#include "transport/shm/bells.h"
#include "transport/shm/lane.h"
#include "transport/shm/pool.h"
#include "transport/shm/regions.h"
#include "transport/transport.h"

namespace unisono::shm {

// What the groups of one rank share. All references outlive the transports.
struct Host {
  int rank = 0;  // in the world
  std::byte* world = nullptr;
  Bells* bells = nullptr;
  Pool* pool = nullptr;  // this rank's
  Regions* regions = nullptr;
  std::vector<std::byte*> pools;   // by world rank
  std::vector<bool> same_process;  // by world rank
};

class ShmTransport final : public transport::Transport {
 public:
  // `use` 0: the lanes of collectives, 1: those of send and recv (no multicast).
  ShmTransport(const Host& host, std::byte* group, std::vector<int> members, int rank, int use);

  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return ranks_; }
  const transport::Limits& limits() const noexcept override { return limits_; }
  bool peek(int lane, transport::Incoming& message) noexcept override;
  void release(int lane) noexcept override;
  bool send(int lane, const void* data, std::size_t bytes,
            std::uint64_t signature) noexcept override;
  std::byte* reserve(int lane, std::size_t bytes) noexcept override;
  void commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept override;
  bool can_share(const void* data, std::size_t bytes) noexcept override;
  bool share(int lane, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override;
  transport::Mark mark(int lane) const noexcept override { return out(lane).writer.position(); }
  bool drained(int lane, transport::Mark mark) noexcept override {
    return out(lane).writer.drained(mark);
  }
  // Takes back the slots that all readers are done with. True: none is lent any more.
  bool reclaim() noexcept;

 private:
  struct Out {
    LaneWriter writer;
    std::uint32_t slot = Pool::kNone;  // reserved, not yet committed
    alignas(kLine) std::byte staged[kInlineBytes] = {};
  };
  struct In {
    LaneReader reader;
    int from = 0;             // in the world
    std::uint32_t cells = 0;  // of the message that peek() gave
    alignas(kLine) std::byte gathered[kInlineBytes] = {};
  };
  Out& out(int lane) noexcept { return out_[static_cast<std::size_t>(lane)]; }
  const Out& out(int lane) const noexcept { return out_[static_cast<std::size_t>(lane)]; }
  void wake_readers(int lane) noexcept;
  bool resolve(In& in, const Cell& cell, transport::Incoming& message) noexcept;

  const Host& host_;
  std::vector<int> members_;  // world rank of each rank of the group
  int rank_;
  int ranks_;
  transport::Limits limits_;
  std::vector<Out> out_;
  std::vector<In> in_;
};

}  // namespace unisono::shm
