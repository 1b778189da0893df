// The connections of one process to the other ranks of its world: one link to each, shared by all
// groups. It reads and writes for all of them, waits for all of them, and knows how they are.
//
// Nothing here blocks but wait(), and nothing throws but the constructor. Any thread may call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "transport/tcp/channel.h"
#include "transport/tcp/failure.h"
#include "transport/tcp/fork_guard.h"
#include "transport/tcp/link.h"

namespace unisono::tcp {

struct ConnectionsOptions {
  int silence_ms = 2000;  // a peer whose system is silent for so long is lost
  int slots = 8;          // long messages of a lane that may be under way, and its memory
};

class Connections {
 public:
  // `channels` by rank of the world: the connected streams to it, 1 to kMostStreams; none to this
  // rank itself, and to those that are reached in another way. Throws resource.
  Connections(int rank, Channels channels, const ConnectionsOptions& options = {});
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  ~Connections();

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return static_cast<int>(links_.size()); }
  // nullptr: there is no connection.
  Link* link(int rank) noexcept { return links_[static_cast<std::size_t>(rank)].link.get(); }

  // Reads what has come and writes what waits, on all links. True: something came.
  bool progress() noexcept;
  // Bytes that have come and gone, on all links. For tests and statistics.
  struct Traffic {
    std::uint64_t heard = 0;
    std::uint64_t told = 0;
  };
  Traffic traffic() noexcept;
  // Writes what waits. Cheap where nothing does. True: nothing waits any more.
  bool flush() noexcept { return signs_.backlogs.load(std::memory_order_relaxed) == 0 || push(); }
  // Sleeps until something comes, may be written, or wake(). False: nothing in that time. True also
  // if something happened since this thread's last call returned: another thread may have read it.
  // Whoever sleeps so that others must wake looks at its lanes after each call.
  bool wait(int timeout_us) noexcept;
  void wake() noexcept { signs_.ring(); }
  // Readable when wait() would not sleep, for who must wait for other things as well. After a call
  // of arm(), which also says so if something has come meanwhile (true: do not sleep).
  int descriptor() const noexcept { return epoll_.get(); }
  // Who writes 8 bytes to it, wakes.
  int waker() const noexcept { return wake_.get(); }
  bool arm() noexcept;

  // Changes when one of the following may have.
  int troubles() const noexcept { return signs_.troubles.load(std::memory_order_acquire); }
  // Of the rank that failed first: others may fail because of it. Its reason is none if none has.
  Failure failure() noexcept;
  Failure failure_of(int rank) noexcept;
  bool has_left(int rank) noexcept;
  struct Abort {
    int peer = -1;
    std::string reason;
  };
  std::optional<Abort> aborted() noexcept;

  void abort(std::string_view reason) noexcept;  // tells all
  void leave() noexcept;                         // the last word to all, in good order
  // The systems of the peers have all that was to be sent, but of those that are `lost` or silent
  // for so long; those that are gone want nothing.
  bool delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept;
  // Frames of groups of earlier epochs are dropped from now on.
  void retire_before(std::uint32_t epoch) noexcept;

  // Call it now and then, with the time. A link has failed where the peer's system is silent, or
  // where one of several streams alone has been dead for a second.
  void look_at_streams(std::int64_t now_us) noexcept;

 private:
  struct Entry {
    std::unique_ptr<Link> link;
    std::vector<bool> for_output = {};  // streams that epoll watches for room; guarded by the link
    std::vector<bool> watched = {};
    std::int64_t half_us =
        0;  // since when only some of its streams live; 0: all do; guarded by the link
  };
  // A thread that waits, and the news that it knew when wait() returned.
  struct Waiter {
    std::thread::id thread;
    std::uint32_t seen = 0;
  };
  static constexpr std::size_t kWaiters = 16;

  std::optional<std::uint32_t> seen_by_this_thread() noexcept;
  void note_seen() noexcept;
  bool push() noexcept;
  bool attend(Entry& entry) noexcept;
  void watch(Entry& entry) noexcept;

  int rank_;
  ConnectionsOptions options_;
  Signs signs_;
  std::vector<Entry> links_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::optional<ForkGuard> fork_guard_;  // goes before the descriptors
  std::mutex waiting_;
  std::array<Waiter, kWaiters> waiters_ = {};  // guarded by waiting_
  std::size_t next_waiter_ = 0;
  std::atomic<std::int64_t> looked_us_ = 0;
};

}  // namespace unisono::tcp
