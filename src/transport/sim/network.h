// A simulated network for tests and for replaying recordings: the lanes of a group of ranks, in one
// thread and virtual time.
//
// A seed determines everything that a real transport leaves open: how long each message is in
// transit (messages of one lane keep their order, messages of different lanes may overtake each
// other), when each reader of a multicast sees the message, and when a writer learns of a release.
// The network detects violations of the transport's contract (violation()) and can inject faults
// (InjectedFault). The same options give the same run on every machine.
//
// Only pass() advances the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/sim/lane.h"
#include "transport/sim/random.h"
#include "transport/transport.h"

namespace unisono::sim {

// One fault. `at` is an index from 0: for `stops` it counts the rank's actions on its lanes (sends
// and releases), for all other faults the messages that the rank sends.
struct InjectedFault {
  enum class Kind : std::uint8_t {
    none,
    stops,      // the rank dies: its later actions have no effect
    signature,  // a message has the signature of another operation
    shorter,    // a message loses its second half
    longer,     // a message gets extra bytes
  };
  Kind kind = Kind::none;
  int rank = 0;
  std::uint64_t at = 0;
};

struct NetworkOptions {
  int ranks = 2;
  std::size_t inline_bytes = 256;
  std::size_t slot_bytes = 4096;
  bool multicast = true;
  // Capacity of a lane. A message takes 64 bytes and, if it is inline, 5/4 of its own length; an
  // empty lane accepts a message of any length. The engine may rely on 2 * kSmallLane bytes
  // (bound_program.h).
  std::size_t lane_bytes = 2048;
  int lane_slots = 4;  // messages of a lane that may be in slots at once
  // Bytes that readers may release before they notify the writer, in addition to lane_bytes.
  std::size_t unreported_bytes = 0;
  std::uint64_t sharing = 0;   // bit r: all memory of rank r can be shared
  std::uint64_t offering = 0;  // bit r: rank r offers messages longer than an inline one
  std::uint64_t delay = 0;     // most ticks until a message is visible; occasionally 16 times that
  std::uint64_t told_late =
      0;  // most ticks until the writer sees a release; occasionally 16 times that
  // Maximum number of ticks before the system accepts sent data. Data that is delayed in this way
  // is sent at the writer's next action, which may be flush(). 0: all data is sent at once.
  std::uint64_t taken_late = 0;
  std::uint64_t seed = 1;
  InjectedFault fault = {};
};

class SimNetwork {
 public:
  explicit SimNetwork(const NetworkOptions& options);
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;
  ~SimNetwork();

  transport::Transport& transport(int rank);

  // Advances the time. Returns true if a rank may see something new.
  bool pass(std::uint64_t ticks);
  // Advances to the next change. Returns false if nothing is in transit.
  bool pass_to_next_change();

  bool stopped(int rank) const { return has_stopped_ && rank == options_.fault.rank; }
  // Returns true if the fault has happened. It may never happen, because a rank may send too few
  // messages.
  bool struck() const { return struck_; }
  // The first violation of the transport's contract; empty: none.
  const std::string& violation() const { return violation_; }

 private:
  class Port;
  SimLane& outgoing(int from, int lane);
  SimLane& incoming(int to, int lane, std::size_t& reader);
  std::uint64_t later(std::uint64_t most, std::uint64_t not_before);
  std::size_t part_of(std::size_t bytes);
  bool acts(int rank) noexcept;
  void put(int from, int lane, SimMessage message) noexcept;
  void release_held(int from) noexcept;
  void damage(SimMessage& message) noexcept;
  void violated(int rank, const char* what);
  void check_shared(const SimMessage& message, int reader);

  NetworkOptions options_;
  Random random_;
  std::uint64_t now_ = 0;
  std::vector<std::uint64_t> changes_;  // a heap of the times of changes
  std::vector<SimLane> lanes_;          // [from * (ranks + 1) + lane]
  struct Held {
    std::uint64_t until = 0;
    int lane = 0;
    std::uint32_t position = 0;
  };
  std::vector<std::vector<Held>> held_;  // [rank]: data that the system has not taken, in order
  std::vector<std::unique_ptr<Port>> ports_;
  std::uint64_t done_ = 0;  // actions of the faulty rank, as InjectedFault::at counts
  bool struck_ = false;
  bool has_stopped_ = false;
  std::string violation_;
};

}  // namespace unisono::sim
