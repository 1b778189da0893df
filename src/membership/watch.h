// Looks for dead ranks and for reports from other hosts, and passes reasons to the world's abort
// word. All ranks in this file are world ranks.
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
  // All arguments must outlive this object. `network` is nullptr if there is one host.
  // `first_ranks` has, by rank, each rank's number before any rank was lost; it is empty if no rank
  // was lost.
  Watch(const Hosts& hosts, LocalHost& host, transport::Network* network, AbortWord& abort,
        std::vector<int> first_ranks);
  ~Watch();

  // Looks for dead peers and for reports from other hosts. This is cheap, but takes a system call.
  // Returns at once if another thread is already looking.
  void look() noexcept;
  // Receives reports that only the network has: that another rank ends the world, or that a rank is
  // gone.
  void listen() noexcept;
  // Returns true if the network has reports that listen() has not received yet.
  bool network_has_more() const noexcept;

  // Returns true if a rank has destroyed its world in order, so that it sends nothing more.
  bool has_left(int rank) noexcept;
  bool has_left_here(int rank) noexcept;
  // Returns true if a rank of another process on this host is proved dead.
  bool is_dead_here(int rank);
  bool same_process_as(int rank) const noexcept;
  // Returns 0 if the process of a rank on this host runs; if it is stopped, returns the process to
  // continue (SIGCONT).
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
  std::unique_ptr<LivenessToken> token_;  // nullptr: all ranks on this host are in this process
  std::atomic<int> events_seen_ = 0;
};

}  // namespace unisono::comm
