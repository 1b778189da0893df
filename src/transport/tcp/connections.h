// The connections of one process to the other ranks of its world: one link per rank, shared by all
// groups. This class reads and writes the data of all links, waits for them, and tracks their
// state.
//
// Only wait() blocks, and only the constructor throws. Any thread may call.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "transport/introduced_network.h"
#include "transport/tcp/channel.h"
#include "transport/tcp/failure.h"
#include "transport/tcp/fork_guard.h"
#include "transport/tcp/link.h"
#include "transport/tcp/waiters.h"

namespace unisono::tcp {

struct ConnectionsOptions {
  int silence_ms = transport::kSilenceMs;  // a peer whose system is silent for this long is lost
  int slots = 8;                           // long messages of a lane in transit, and its memory
};

class Connections final : public transport::ControlNetwork {
 public:
  // `channels` has, per world rank, 1 to kMostStreams connected streams. It is empty for this rank
  // itself and for ranks that are reached by other means. Throws resource.
  Connections(int rank, Channels channels, const ConnectionsOptions& options = {});
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  ~Connections() override;

  int rank() const noexcept { return rank_; }
  // Returns nullptr if there is no connection.
  TcpLink* link(int rank) noexcept { return links_[static_cast<std::size_t>(rank)].link.get(); }

  std::unique_ptr<transport::Transport> lanes(std::uint64_t group, std::span<const int> members,
                                              int rank) override;
  void begin_epoch(std::uint32_t epoch) noexcept override;
  transport::Frames frames(int rank) noexcept override;

  bool progress() noexcept override;
  // Bytes received and sent on all links. For tests and statistics.
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
  int waker() const noexcept override { return wake_.get(); }
  bool reaches(int rank) const noexcept override {
    return links_[static_cast<std::size_t>(rank)].link != nullptr;
  }
  void wake_for(int descriptor) override;
  void note_arrival() noexcept override { events_.arrived(); }

  int events() const noexcept override { return events_.failures.load(std::memory_order_acquire); }
  transport::Loss first_loss() override { return tcp::loss_of(failure()); }
  // Returns the first failure that a link has recorded; its reason is none if there is no failure.
  Failure failure() noexcept;
  transport::Loss loss_of(int rank) override;
  bool has_left(int rank) noexcept override;
  std::string farewell_of(int rank) override;
  std::optional<Abort> aborted() noexcept override;

  void abort(std::string_view reason) noexcept override;
  void leave(std::string_view farewell) noexcept override;
  bool delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept override;

  void look_for_losses() noexcept override;
  // As look_for_losses(), with the current time.
  void look_at_streams(std::int64_t now_us) noexcept;

 private:
  struct Entry {
    std::unique_ptr<TcpLink> link;
    std::vector<bool> for_output = {};  // streams that epoll watches for room; guarded by the link
    std::vector<bool> watched = {};
  };

  bool arm() noexcept;
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
  std::optional<ForkGuard> fork_guard_;  // destroyed before the descriptors
  Waiters waiters_;
  std::atomic<std::int64_t> looked_us_ = 0;
};

}  // namespace unisono::tcp
