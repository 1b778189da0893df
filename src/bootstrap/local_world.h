// The ranks of one job on one host: how they find each other, and how they communicate before there
// is shared memory.
//
// Rendezvous: rank 0 listens on an abstract Unix socket named after the job. Every other rank
// Rendezvous: rank 0 listens on an abstract Unix socket named after the job. Every other rank
// connects, proves the token and the uid (SO_PEERCRED), and sends its rank. These connections stay
// open, as a star for small blocking exchanges. In addition, ranks of different processes connect
// to each other, to pass descriptors (registered memory). If a rank dies, its connections close and
// its pidfd becomes readable. Ranks that are threads of one process join in the same way.
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
  // Blocks until all ranks have joined. The options must be complete (see resolve()). If there are
  // several hosts, `names` are the ranks on this host. While ranks are missing, join() calls
  // `watch` about ten times a second; if `watch` throws, the wait ends. Errors: config (a rank came
  // twice, or sizes differ), connection ("joined 6 of 8; missing ranks 3, 5", or the token was
  // refused).
  static std::unique_ptr<LocalWorld> join(const ConnectOptions& options, RankNames names = {},
                                          const std::function<void()>& watch = nullptr);
  virtual ~LocalWorld() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const Peer& peer(int rank) const = 0;

  // Ends the set-up: sends the reason to the other ranks on this host, which would otherwise only
  // notice that this rank is gone.
  virtual void tell(const Error& error) noexcept = 0;

  // Set-up only; collective over the star. Returns every rank's bytes, by rank. Throws after the
  // timeout for connecting.
  virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) = 0;

  // Sends one descriptor from rank 0 (its argument) to all other ranks, which get duplicates. Rank
  // 0 gets a duplicate as well. Set-up only.
  virtual int broadcast_fd(int fd) = 0;

  // Sends to a rank of another process, without blocking. Returns false if the socket is full; the
  // caller should try later. Throws if the peer is dead.
  virtual bool send_fd(int to, std::span<const std::byte> note, int fd) = 0;
  // Returns the next note from any rank, without blocking.
  virtual std::optional<FdNote> receive_fd() = 0;

  // Returns the first dead rank, if there is one. Never blocks, and allocates nothing while all
  // ranks live. Takes at most about 1 us for 8 ranks (one epoll_wait with a zero timeout). Threads
  // of this process never count as dead.
  virtual std::optional<Death> find_death() = 0;
  // Returns true if this rank is dead. Unlike find_death(), also detects later deaths.
  virtual bool is_dead(int rank) = 0;
  // Returns true if a rank of another process has destroyed its world in order, as far as
  // find_death() has noticed. This is not a death: all data of the rank has been sent. But no more
  // data will come.
  virtual bool has_left(int rank) const = 0;
};

// Completes unset options from the environment. A timeout with its default value counts as unset. A
// job without a name is called "default". Errors: config, which names the variables that contradict
// each other.
ConnectOptions resolve(const ConnectOptions& options);

}  // namespace unisono::comm
