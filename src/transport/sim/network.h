// A simulated network, for tests and for recordings that are played again: the lanes of a group of
// ranks in one thread, in virtual time.
//
// Everything that a real transport leaves open follows from a seed: how long each message is under
// way (the order of a lane is kept, lanes overtake each other), when each reader of a multicast
// sees it, when a writer hears of a release. What the seam forbids is noticed (violation()), and
// what may go wrong can be made to (Fault). The same options give the same run on every machine.
//
// Time stands still unless pass() is called.
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

// What goes wrong, once. `at` counts from 0: for `stops` what the rank does to its lanes (sends and
// releases), for the others the messages that it sends.
struct InjectedFault {
  enum class Kind : std::uint8_t {
    none,
    stops,      // the rank dies: nothing it does from then on has an effect
    signature,  // a message says that it is of another operation
    shorter,    // a message lost its second half
    longer,     // a message got a tail
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
  // Room of a lane. A message takes 64 bytes and, if it is inline, 5/4 of its own; a lane that is
  // empty takes any one. The engine may count on 2 * kSmallLane of it (bound_program.h).
  std::size_t lane_bytes = 2048;
  int lane_slots = 4;  // messages of a lane that may be in slots at once
  // How much room readers may free before they tell the writer, on top of lane_bytes.
  std::size_t unreported_bytes = 0;
  std::uint64_t sharing = 0;    // bit r: all memory of rank r can be shared
  std::uint64_t offering = 0;   // bit r: rank r offers what is longer than an inline message
  std::uint64_t delay = 0;      // ticks until a message is seen, up to this; now and then 16 times
  std::uint64_t told_late = 0;  // ticks until the writer hears of a release, in the same way
  // Ticks that now and then pass before the system takes what is sent: then it leaves when its
  // writer does anything, and if that is flush(). 0: all leaves at once.
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

  // Lets time go by. True: somebody may see something new.
  bool pass(std::uint64_t ticks);
  // Up to the next change. False: nothing is under way.
  bool pass_to_next_change();

  bool stopped(int rank) const { return has_stopped_ && rank == options_.fault.rank; }
  // Whether the fault has come about. A rank may send too few messages for it.
  bool struck() const { return struck_; }
  // What the ranks did that the seam forbids; empty: nothing.
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
  std::vector<std::uint64_t> changes_;  // a heap of the times at which something changes
  std::vector<SimLane> lanes_;          // [from * (ranks + 1) + lane]
  struct Held {
    std::uint64_t until = 0;
    int lane = 0;
    std::uint32_t position = 0;
  };
  std::vector<std::vector<Held>> held_;  // [rank]: what the system has not taken, in order
  std::vector<std::unique_ptr<Port>> ports_;
  std::uint64_t done_ = 0;  // by the rank of the fault, as Fault::at counts
  bool struck_ = false;
  bool has_stopped_ = false;
  std::string violation_;
};

}  // namespace unisono::sim
