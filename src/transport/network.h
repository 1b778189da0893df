// What carries messages between hosts, for all groups of a process: it connects this rank with the
// ranks of other hosts, moves what lanes send, sleeps for all of them, and knows how the peers are.
//
// Nothing here blocks but wait(), and nothing throws but lanes() and what tells of a loss in words.
// Any thread may call.
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

// A peer whose system says nothing for so long is lost, where nobody says otherwise.
inline constexpr int kSilenceMs = 2000;

// Why a rank of another host cannot be reached any more.
struct Loss {
  enum class Kind : std::uint8_t {
    none,
    closed,   // the peer's system closed the connection without a word, as when a process ends
    reset,    // the same, with something under way that was not read
    broken,   // the system gave the connection up for another reason
    silent,   // nothing was closed, and nothing comes
    damaged,  // what came is not what the peer sent, or should have sent
    given_up  // this process has no memory for what the peer sends
  };
  int peer = -1;  // rank of the world
  Kind kind = Kind::none;
  std::string how = {};  // "the connection to rank 3 was closed by the other side ..."

  explicit operator bool() const noexcept { return kind != Kind::none; }
};

// The longest farewell of a rank that leaves.
inline constexpr std::size_t kMostFarewell = 4096;

class Network {
 public:
  virtual ~Network() = default;

  // The lanes of a group, to all of its members; those to ranks of this host lead nowhere.
  // `members`: the rank in the world of each rank of the group, of which this one is `rank`. All
  // members give the group the same number, which no other group of the epoch has; lanes for
  // another use are another group. Throws resource.
  virtual std::unique_ptr<Transport> lanes(std::uint64_t group, std::span<const int> members,
                                           int rank) = 0;
  // Lanes belong to this epoch from now on, and what comes for earlier ones is dropped.
  virtual void begin_epoch(std::uint32_t epoch) noexcept = 0;

  // Reads what has come and writes what waits. True: something came.
  virtual bool progress() noexcept = 0;
  // Writes what waits. Cheap where nothing does. True: nothing waits any more.
  virtual bool flush() noexcept = 0;
  // Sleeps until something comes, may be written, or wake(). False: nothing in that time. True also
  // if something happened since this thread's last call returned: another thread may have read it.
  // A thread that sleeps so that others must wake looks at its lanes after each call.
  virtual bool wait(int timeout_us) noexcept = 0;
  virtual void wake() noexcept = 0;
  // A descriptor: whoever writes 8 bytes to it, wakes.
  virtual int waker() const noexcept = 0;

  // Changes when one of the following may have.
  virtual int events() const noexcept = 0;
  // The loss of the rank that was lost first: others may be lost because of it.
  virtual Loss first_loss() = 0;
  virtual Loss loss_of(int rank) = 0;
  // Whether a rank has left in good order.
  virtual bool has_left(int rank) noexcept = 0;
  // What it said then. Empty before, or if it said nothing. Throws std::bad_alloc.
  virtual std::string farewell_of(int rank) = 0;
  // A rank that has ended the world, and its words.
  struct Abort {
    int peer = -1;
    std::string reason;
  };
  virtual std::optional<Abort> aborted() noexcept = 0;
  // Call it now and then: finds peers whose systems are silent.
  virtual void look_for_losses() noexcept = 0;

  virtual void abort(std::string_view reason) noexcept = 0;  // tells all
  // The last word to all, in good order; `farewell` is cut at kMostFarewell.
  virtual void leave(std::string_view farewell) noexcept = 0;
  // The systems of the peers have all that was to be sent, but of those that are `lost` or silent
  // for so long; those that are gone want nothing.
  virtual bool delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept = 0;
};

}  // namespace unisono::transport
