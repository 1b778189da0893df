// Checks the arguments of subgroup(). If members list different ranks, or the same ranks in another
// order, each would wait in a group that the others do not have. All ranks here are world ranks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "bootstrap/host_memory.h"

namespace unisono::transport {

class Network;
class Transport;

}  // namespace unisono::transport

namespace unisono::comm {

class AbortWord;
class Hosts;
class LocalHost;

// Threads: any.
class Rosters {
 public:
  // All arguments must outlive this object. `network`: nullptr if there is only one host. Throws
  // resource.
  Rosters(const Hosts& hosts, LocalHost& host, transport::Network* network, AbortWord& abort,
          int rank);
  ~Rosters();

  // Registers that this rank makes group `id` from `group`. Notifies the members. Ends the world if
  // a member, or a rank that counts this rank as a member, has listed other members. Does not wait.
  // The new group keeps the returned claim. Until the claim is released, no other group of this
  // rank may have the id; throws usage if another group has it.
  std::shared_ptr<const void> enter(std::uint64_t group, std::uint64_t id,
                                    std::span<const int> members);
  // Returns how many groups with this hash (parent, id and members) this rank has made before, and
  // counts one more. Members of the same groups get the same number.
  std::uint64_t count_made(std::uint64_t hash);
  // Receives the rosters of members on other hosts.
  void look() noexcept;

 private:
  struct Mine {
    Roster roster;
    std::vector<int> members;
  };
  std::shared_ptr<const void> claim(const Roster& roster);
  void publish(const Roster& roster) noexcept;
  void listen();
  bool compare(const Mine& mine, int rank, const Roster& theirs);

  const Hosts& hosts_;
  LocalHost& host_;
  AbortWord& abort_;
  const int rank_;
  std::mutex mutex_;  // guards the members below, and this rank's board
  std::unique_ptr<transport::Transport> lanes_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> claimed_;  // parent group and id
  std::map<std::uint64_t, std::uint64_t> made_;                // number of groups, by hash
  std::deque<Mine> mine_;                                      // the latest ones
  std::deque<std::pair<int, Roster>> heard_;  // the latest ones from other hosts, with their ranks
};

}  // namespace unisono::comm
