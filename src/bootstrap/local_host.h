// The resources that the ranks on one host share while a world lives: the world's memory,
// registered memory, and sockets that pass descriptors between processes.
//
// All ranks here are local numbers. After construction, any thread may call.
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
  // Collective over the ranks on the host. `ranks` must outlive this object, and only this object
  // may use it. `threads` is the number of threads of a rank that move data. `on_error` receives
  // errors that cannot be thrown. Throws resource.
  LocalHost(LocalWorld& ranks, std::string_view job, int threads, bool oversubscribed,
            std::function<void(const std::exception&)> on_error);

  int rank() const noexcept { return context_.rank; }
  int size() const noexcept { return ranks_.size(); }
  const Peer& peer(int rank) const noexcept { return ranks_.peer(rank); }
  bool same_process(int rank) const noexcept {
    return context_.same_process[static_cast<std::size_t>(rank)];
  }
  bool is_one_process() const noexcept;
  // Returns true if there are more threads than CPUs for them, so that a waiting thread must yield
  // at once.
  bool oversubscribed() const noexcept { return oversubscribed_; }

  const WorldMemory& memory() const noexcept { return memory_; }
  shm::EventCounts& event_counts() noexcept { return event_counts_; }
  shm::Regions& regions() noexcept { return regions_; }
  // The context for making lanes; it must outlive them.
  const shm::ShmContext& context() const noexcept { return context_; }

  // Set-up only: sends `mine` to all ranks on the host. Returns the data of all ranks, by rank.
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) {
    return ranks_.all_gather(mine);
  }
  // Set-up only: lets this rank sleep in the network, as a rank that waits for several hosts must.
  // Event counts do not wake it there, so from now on its local peers write to its descriptor.
  void wake_through(const transport::Network& network);

  // Returns true if a rank has destroyed its world in order, so that it sends nothing more.
  bool has_left(int rank) noexcept {
    return event_counts_.of(rank).left.load(std::memory_order_acquire) != 0;
  }
  void leave() noexcept;
  // Finds a rank of another process that has died or is about to die. Returns false if another
  // thread is already looking.
  bool find_death(std::optional<Death>& death);
  bool is_dead(int rank);

  // Identifies a group's segment when it is sent to the group's members.
  struct SegmentName {
    enum class Kind : std::uint32_t { group = 2, subgroup = 3 };
    Kind kind = Kind::group;
    std::uint64_t number = 0;
  };
  // Returns false if the rank does not read its announcements at the moment. Throws if the rank is
  // dead.
  bool send_segment(int to, const SegmentName& name, const shm::Mapping& mapping, int fd);
  // Returns the segment that `from` has sent under this name; each segment is returned once.
  // Returns nullptr if it has not arrived.
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
  std::vector<UniqueFd> wakers_;  // by rank: the descriptor to write to, to wake it
  std::mutex use_;                // guards ranks_ after the set-up, and the members below
  std::map<std::tuple<int, std::uint32_t, std::uint64_t>, std::shared_ptr<shm::Mapping>> segments_;
};

}  // namespace unisono::comm
