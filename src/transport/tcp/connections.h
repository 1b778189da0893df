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
#include "transport/network.h"
#include "transport/tcp/channel.h"
#include "transport/tcp/failure.h"
#include "transport/tcp/fork_guard.h"
#include "transport/tcp/link.h"

namespace unisono::tcp {

struct ConnectionsOptions {
  int silence_ms = transport::kSilenceMs;  // a peer whose system is silent for so long is lost
  int slots = 8;  // long messages of a lane that may be under way, and its memory
};

class Connections final : public transport::Network {
 public:
  // `channels` by rank of the world: the connected streams to it, 1 to kMostStreams; none to this
  // rank itself, and to those that are reached in another way. Throws resource.
  Connections(int rank, Channels channels, const ConnectionsOptions& options = {});
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  ~Connections() override;

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return static_cast<int>(links_.size()); }
  // nullptr: there is no connection.
  TcpLink* link(int rank) noexcept { return links_[static_cast<std::size_t>(rank)].link.get(); }

  std::unique_ptr<transport::Transport> lanes(std::uint64_t group, std::span<const int> members,
                                              int rank) override;
  void begin_epoch(std::uint32_t epoch) noexcept override;

  bool progress() noexcept override;
  // Bytes that have come and gone, on all links. For tests and statistics.
  struct Traffic {
    std::uint64_t heard = 0;
    std::uint64_t told = 0;
  };
  Traffic traffic() noexcept;
  bool flush() noexcept override {
    return events_.backlogs.load(std::memory_order_relaxed) == 0 || push();
  }
  bool wait(int timeout_us) noexcept override;
  void wake() noexcept override { events_.ring(); }
  // Readable when wait() would not sleep, for a thread that waits for other things as well. After a
  // call of arm(), which also says so if something has come meanwhile (true: do not sleep).
  int descriptor() const noexcept { return epoll_.get(); }
  int waker() const noexcept override { return wake_.get(); }
  bool arm() noexcept;
  // wait() also returns when this descriptor is readable. Throws resource.
  void wake_for(int descriptor);
  // Something has come for threads that wait(), in another way than over these connections.
  void note_arrival() noexcept { events_.arrived(); }

  int events() const noexcept override { return events_.failures.load(std::memory_order_acquire); }
  transport::Loss first_loss() override { return tcp::loss_of(failure()); }
  transport::Loss loss_of(int rank) override { return tcp::loss_of(failure_of(rank)); }
  // The same as the links know it. Its reason is none if none has failed.
  Failure failure() noexcept;
  Failure failure_of(int rank) noexcept;
  bool has_left(int rank) noexcept override;
  std::optional<Abort> aborted() noexcept override;

  void abort(std::string_view reason) noexcept override;
  void leave() noexcept override;
  bool delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept override;

  void look_for_losses() noexcept override;
  // The same, with the time. A link has failed where the peer's system is silent, or where one of
  // several streams alone has been dead for a second.
  void look_at_streams(std::int64_t now_us) noexcept;

 private:
  struct Entry {
    std::unique_ptr<TcpLink> link;
    std::vector<bool> for_output = {};  // streams that epoll watches for room; guarded by the link
    std::vector<bool> watched = {};
    std::int64_t half_us =
        0;  // since when only some of its streams live; 0: all do; guarded by the link
  };
  // A thread that waits, and how many arrivals it knew of when wait() returned.
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
  std::uint32_t epoch_ = 0;
  ConnectionsOptions options_;
  LinkEvents events_;
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
