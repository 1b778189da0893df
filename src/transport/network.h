// The network that carries messages between hosts, for all groups of a process: it connects this
// rank with ranks on other hosts, moves the data of lanes, sleeps on behalf of all of them, and
// tracks the state of the peers.
//
// Only wait() blocks; only lanes() and functions that describe a loss throw. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace unisono::transport {

class Transport;

// A peer whose system is silent for this long is lost, unless it is configured otherwise.
inline constexpr int kSilenceMs = 2000;

// Why a rank on another host cannot be reached any more.
struct Loss {
  enum class Kind : std::uint8_t {
    none,
    closed,   // the peer's system closed the connection without notice, as when a process ends
    reset,    // like closed, while unread data was in transit
    broken,   // the system closed the connection for another reason
    silent,   // the connection is open, but nothing arrives
    damaged,  // the received data is not what the peer sent, or should have sent
    given_up  // this process has no memory for the peer's data
  };
  int peer = -1;  // world rank
  Kind kind = Kind::none;
  std::string how = {};  // "the connection to rank 3 was closed by the peer ..."

  explicit operator bool() const noexcept { return kind != Kind::none; }
};

// The longest farewell of a rank that leaves.
inline constexpr std::size_t kMostFarewell = 4096;

// The group of the lanes that carry reports about waits. A report ends no wait, so Frames does not
// count them.
inline constexpr std::uint64_t kReportGroup = 0x7265706f72747331;

// The frames between this rank and a peer, on all lanes except those of kReportGroup: messages, and
// notices of released ones. If what each side has sent equals what the other has received, nothing
// is in transit.
struct Frames {
  std::uint64_t sent = 0;      // given to lanes, also those that have not left this process
  std::uint64_t received = 0;  // complete here, whether read or not
  friend bool operator==(const Frames&, const Frames&) = default;
};

class Network {
 public:
  virtual ~Network() = default;

  // Returns the lanes of a group to all its members; lanes to ranks on this host carry no
  // data.
  // `members`: the world ranks of the group, in which this rank is `rank`. All members give the
  // group the same number, which no other group of the epoch has; lanes for another use count as
  // another group. Throws resource.
  virtual std::unique_ptr<Transport> lanes(std::uint64_t group, std::span<const int> members,
                                           int rank) = 0;
  // New lanes belong to this epoch, and data for earlier epochs is dropped.
  virtual void begin_epoch(std::uint32_t epoch) noexcept = 0;
  // Returns the frames exchanged with a rank so far; none if no connection leads to it.
  virtual Frames frames(int rank) noexcept = 0;

  // Reads available data and writes pending data. Returns true if something arrived.
  virtual bool progress() noexcept = 0;
  // Writes pending data; cheap if there is none. Returns true if nothing is pending any more.
  virtual bool flush() noexcept = 0;
  // Sleeps until data arrives, data can be written, or wake() is called. Returns false on timeout.
  // Also returns true if something happened since this thread's last call returned, because another
  // thread may have read its data; so a thread must check its lanes after each call.
  virtual bool wait(int timeout_us) noexcept = 0;
  virtual void wake() noexcept = 0;
  // A descriptor: writing 8 bytes to it wakes the sleeping threads.
  virtual int waker() const noexcept = 0;

  // A counter that changes when a result of the following functions may have changed.
  virtual int events() const noexcept = 0;
  // Returns the loss of the rank that was lost first; other ranks may be lost because of it.
  virtual Loss first_loss() = 0;
  virtual Loss loss_of(int rank) = 0;
  // Returns true if a rank has left properly.
  virtual bool has_left(int rank) noexcept = 0;
  // Returns its farewell. Empty before, or without one. Throws std::bad_alloc.
  virtual std::string farewell_of(int rank) = 0;
  // The rank that has ended the world, and its reason.
  struct Abort {
    int peer = -1;
    std::string reason;
  };
  virtual std::optional<Abort> aborted() noexcept = 0;
  // Detects peers whose systems are silent. Call it occasionally.
  virtual void look_for_losses() noexcept = 0;

  virtual void abort(std::string_view reason) noexcept = 0;  // notifies all peers
  // Sends the last message to all peers: this rank leaves properly. `farewell` is cut at
  // kMostFarewell.
  virtual void leave(std::string_view farewell) noexcept = 0;
  // Returns true if the systems of all peers have received all data. Peers that have left, are
  // `lost`, or have been silent for this time do not count.
  virtual bool delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept = 0;
};

}  // namespace unisono::transport
