// Looks for ranks that are no more, and for what other hosts say, and gives the reason to the
// world's abort word. All ranks here are ranks of the world.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <vector>

#include "bootstrap/end_reason.h"

namespace unisono::transport {

class Network;

}  // namespace unisono::transport

namespace unisono::comm {

class AbortWord;
class Hosts;
class LivenessToken;
class LocalHost;

// Any thread may call.
class Watch {
 public:
  // All of these outlive it. `network`: nullptr where there is one host. `first_ranks`: by rank,
  // what it was before anybody was lost; empty: the same.
  Watch(const Hosts& hosts, LocalHost& host, transport::Network* network, AbortWord& abort,
        std::vector<int> first_ranks);
  ~Watch();

  // Looks for dead peers, and for what other hosts say. Cheap, but a system call. A thread that
  // finds another one looking leaves it to that.
  void look() noexcept;
  // What the network knows alone: why another rank ends the world, or that one is no more.
  void listen() noexcept;
  // Whether the network knows something that listen() has not taken in.
  bool network_has_more() const noexcept;

  // Whether a rank has destroyed its world in good order: it sends nothing any more.
  bool has_left(int rank) noexcept;
  bool has_left_here(int rank) noexcept;
  // Proved, of a rank of this host and another process.
  bool is_dead_here(int rank);
  bool same_process_as(int rank) const noexcept;
  // For a rank of this host: 0 if its process runs, else what to continue (SIGCONT).
  pid_t stopped_process(int rank) const;

 private:
  void look_for_local_death();
  int first_rank(int rank) const;

  const Hosts& hosts_;
  LocalHost& host_;
  transport::Network* network_;
  AbortWord& abort_;
  std::vector<int> first_ranks_;
  const EndReasonReader end_reasons_;
  std::unique_ptr<LivenessToken> token_;  // nullptr: all ranks of this host are of this process
  std::atomic<int> events_seen_ = 0;
};

}  // namespace unisono::comm
