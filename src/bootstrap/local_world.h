// The ranks of one job on one host: how they find each other, and what they can do before there is
// shared memory.
//
// Rendezvous: rank 0 listens on an abstract Unix socket named after the job; the others connect,
// prove the token and the uid (SO_PEERCRED), and tell who they are. The connections stay: a star
// for small blocking exchanges, a mesh between ranks of different processes for descriptors
// (registered memory). A closed connection and a readable pidfd are how a death is seen. Ranks that
// are threads of one process join in the same way.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/peer.h"
#include "bootstrap/rank_names.h"
#include "unisono/error.hpp"
#include "unisono/options.hpp"

namespace unisono::comm {

class LocalWorld {
 public:
  // Blocks until all ranks are there. Options must be complete (see resolve()).
  // Errors: config (rank twice, sizes differ), connection ("joined 6 of 8; missing ranks 3, 5",
  // token refused).
  // `names`: of ranks of several hosts, those of this one. `watch`: called about ten times a second
  // while ranks are missing; what it throws ends that wait.
  static std::unique_ptr<LocalWorld> join(const ConnectOptions& options, RankNames names = {},
                                          const std::function<void()>& watch = nullptr);
  virtual ~LocalWorld() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const Peer& peer(int rank) const = 0;

  // The set-up ends: why, for the others of this host, who would only see that this rank is gone.
  virtual void tell(const Error& error) noexcept = 0;

  // Collective over the star; for set-up only. Result: every rank's bytes, by rank. Throws after
  // the connect timeout.
  virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) = 0;

  // Rank 0 passes one descriptor (from its argument) to all others, which get their own duplicate.
  // Rank 0 gets back a duplicate as well. Set-up only.
  virtual int broadcast_fd(int fd) = 0;

  // To one rank of another process, without blocking. False: its socket is full; try later. Throws
  // on a dead peer.
  virtual bool send_fd(int to, std::span<const std::byte> note, int fd) = 0;
  // The next note that any rank sent, without blocking.
  virtual std::optional<FdNote> receive_fd() = 0;

  // Without blocking and without allocation while all live: the first rank found dead, if any. At
  // most about 1 us for 8 ranks (one epoll_wait with a zero timeout). Threads of this process never
  // count as dead.
  virtual std::optional<Death> find_death() = 0;
  // Whether this rank is dead; also of those that die after the first.
  virtual bool is_dead(int rank) = 0;
  // Whether a rank of another process has destroyed its world in order, as far as find_death() has
  // seen. It is no death: what it still owed is sent. But a rank that waits for more waits in vain.
  virtual bool has_left(int rank) const = 0;
};

// Fills what is unset from the environment; a timeout that has its default value counts as unset.
// A job without any name is called "default". Errors: config, with the variables that contradict
// each other.
ConnectOptions resolve(const ConnectOptions& options);

}  // namespace unisono::comm
