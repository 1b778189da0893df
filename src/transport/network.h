// The network that carries messages between hosts for all groups of a process. It connects this
// rank to ranks on other hosts, moves the data of lanes, lets threads sleep until something
// happens, and tracks the state of the peers.
//
// Only wait() blocks. Only lanes() and the functions that describe a loss throw. Any thread may
// call any function.
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

// Default time after which a peer whose system is silent counts as lost.
inline constexpr int kSilenceMs = 2000;

// The reason why a rank on another host is unreachable.
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

// Maximum length of the farewell that a leaving rank sends.
inline constexpr std::size_t kMostFarewell = 4096;

// The group whose lanes carry reports about waiting ranks. A report does not end any wait, so
// Frames does not count reports.
inline constexpr std::uint64_t kReportGroup = 0x7265706f72747331;

// The frames between this rank and a peer: messages, and notices of released messages. Lanes of
// kReportGroup are not counted. If each side has received as many frames as the other has sent,
// nothing is in transit.
struct Frames {
  std::uint64_t sent = 0;      // given to lanes, also those that have not left this process
  std::uint64_t received = 0;  // complete here, whether read or not
  friend bool operator==(const Frames&, const Frames&) = default;
};

class Network {
 public:
  virtual ~Network() = default;

  // Returns the lanes of a group to all its members; lanes to ranks on this host carry no data.
  // `members` are the group's world ranks, and `rank` is this rank's number among them. All members
  // must pass the same group number, and no other group of the epoch may have that number. Lanes
  // for a second use (send and recv) need a number of their own. Throws resource.
  virtual std::unique_ptr<Transport> lanes(std::uint64_t group, std::span<const int> members,
                                           int rank) = 0;
  // Starts an epoch: new lanes belong to it, and data for earlier epochs is dropped.
  virtual void begin_epoch(std::uint32_t epoch) noexcept = 0;
  // Returns the frames exchanged with a rank so far; zeros if no connection leads to the rank.
  virtual Frames frames(int rank) noexcept = 0;

  // Reads the data that has arrived and writes pending data. Returns true if something arrived.
  virtual bool progress() noexcept = 0;
  // Writes pending data; cheap if there is none. Returns true if nothing is pending afterwards.
  virtual bool flush() noexcept = 0;
  // Sleeps until data arrives, data can be written, or wake() is called. Returns false on timeout.
  // Another thread may already have read this thread's data. Therefore wait() also returns true if
  // something has happened since this thread's previous call of wait() returned, and a thread must
  // check its lanes after each call.
  virtual bool wait(int timeout_us) noexcept = 0;
  virtual void wake() noexcept = 0;
  // Returns a descriptor; writing 8 bytes to it wakes the sleeping threads.
  virtual int waker() const noexcept = 0;

  // Returns a counter that changes whenever a result of the functions below may have changed.
  virtual int events() const noexcept = 0;
  // Returns the loss of the rank that was lost first; this loss may have caused later ones.
  virtual Loss first_loss() = 0;
  virtual Loss loss_of(int rank) = 0;
  // Returns true if a rank has announced that it leaves.
  virtual bool has_left(int rank) noexcept = 0;
  // Returns the farewell of a rank that has left; empty if it has not left or sent no farewell.
  // Throws std::bad_alloc.
  virtual std::string farewell_of(int rank) = 0;
  // The rank that has ended the world, and the reason that it gave.
  struct Abort {
    int peer = -1;
    std::string reason;
  };
  virtual std::optional<Abort> aborted() noexcept = 0;
  // Detects peers whose systems are silent. Call it occasionally.
  virtual void look_for_losses() noexcept = 0;

  virtual void abort(std::string_view reason) noexcept = 0;  // notifies all peers
  // Sends the last message to all peers: this rank leaves properly. Truncates `farewell` to
  // kMostFarewell bytes.
  virtual void leave(std::string_view farewell) noexcept = 0;
  // Returns true if the systems of all peers have received all data. Ignores peers that have left,
  // peers for which `lost` returns true, and peers that have been silent for `silence_ms`.
  virtual bool delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept = 0;
};

}  // namespace unisono::transport
