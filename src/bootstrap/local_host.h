// What the ranks of one host share while a world lives: the memory of the world, registered memory,
// and the sockets by which descriptors pass between processes.
//
// All ranks here are numbers on this host. Any thread may call, once it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "bootstrap/local_world.h"
#include "bootstrap/world_memory.h"
#include "transport/network.h"
#include "transport/shm/shm_transport.h"

namespace unisono::comm {

class LocalHost {
 public:
  // All ranks of the host make it at once. `ranks` outlives it, and is used through it alone.
  // `threads`: of a rank, that move data. `on_error` is told of what goes wrong where nothing can
  // be thrown. Throws resource.
  LocalHost(LocalWorld& ranks, std::string_view job, int threads, bool oversubscribed,
            std::function<void(const std::exception&)> on_error);

  int rank() const noexcept { return context_.rank; }
  int size() const noexcept { return ranks_.size(); }
  const Peer& peer(int rank) const noexcept { return ranks_.peer(rank); }
  bool same_process(int rank) const noexcept {
    return context_.same_process[static_cast<std::size_t>(rank)];
  }
  bool is_one_process() const noexcept;
  // More threads than CPUs that they may use: waiting must give way at once.
  bool oversubscribed() const noexcept { return oversubscribed_; }

  const WorldMemory& memory() const noexcept { return memory_; }
  shm::EventCounts& event_counts() noexcept { return event_counts_; }
  shm::Regions& regions() noexcept { return regions_; }
  // What lanes are made from. It outlives them.
  const shm::ShmContext& context() const noexcept { return context_; }

  // Set-up: to all ranks of the host, and from all, by rank.
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) {
    return ranks_.all_gather(mine);
  }
  // Set-up: a rank that waits for several hosts at once sleeps in the network, where event counts
  // do not wake it; from now on its peers write to its descriptor.
  void wake_through(const transport::Network& network);

  // Whether a rank has destroyed its world in good order: it sends nothing any more.
  bool has_left(int rank) noexcept {
    return event_counts_.of(rank).left.load(std::memory_order_acquire) != 0;
  }
  void leave() noexcept;
  // A rank of another process that has died or begins to. False: another thread is looking.
  bool find_death(std::optional<Death>& death);
  bool is_dead(int rank);

  // The segment of a group travels under a name that its members know.
  struct SegmentName {
    enum class Kind : std::uint32_t { group = 2, subgroup = 3 };
    Kind kind = Kind::group;
    std::uint64_t number = 0;
  };
  // False: the rank does not read its announcements now. Throws where it is dead.
  bool send_segment(int to, const SegmentName& name, const shm::Mapping& mapping, int fd);
  // What `from` has sent under that name, once; nullptr: it has not come.
  std::shared_ptr<shm::Mapping> take_segment(int from, const SegmentName& name);

 private:
  shm::ShmContext make_context();
  void find_who_can_fetch();
  bool find_oversubscription(int threads) const;
  bool announce(std::uint32_t number, std::size_t bytes, int fd) noexcept;
  void drain_announcements();
  bool is_ending(int rank) noexcept;
  std::optional<Death> find_ending();

  LocalWorld& ranks_;
  WorldMemory memory_;
  shm::EventCounts event_counts_;
  shm::Pool pool_;
  shm::Regions regions_;
  shm::TransportRegistry registry_;
  shm::ShmContext context_;
  bool oversubscribed_;
  std::vector<UniqueFd> wakers_;  // by rank: what to write to, to wake it
  std::mutex use_;                // guards ranks_ after the set-up, and what follows
  std::map<std::tuple<int, std::uint32_t, std::uint64_t>, std::shared_ptr<shm::Mapping>> segments_;
};

}  // namespace unisono::comm
