// Replays one collective of a recording: the executors of all its ranks run on a simulated network,
// one pass at a time, in the order that the caller chooses.
//
// The network delivers every message at once and has room for all messages, and no send is fused
// with another pass. So a pass advances when the caller asks for it, unless a dependency of the
// program prevents this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/execution.h"
#include "engine/layout.h"
#include "trace/recording.h"
#include "transport/sim/network.h"

namespace unisono::engine {

// The call, which is the same on all ranks. v-forms, premul_sum and user-defined functions are not
// supported.
struct ReplayedCall {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::u8;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;  // as in Call
  bool multicast = false;
  std::vector<bool> in_place = {};  // [rank]: of the group
};

// A pass as in a recorded event. `peer` is a rank of the group; -1 means all ranks, or none.
struct ReplayedPass {
  trace::recording::EventKind kind = trace::recording::EventKind::none;
  int peer = -1;
  std::uint32_t step = 0;
  std::uint64_t bytes = 0;
};

class ReplayedOperation {
 public:
  enum class Outcome : std::uint8_t {
    done,
    waits,    // for a message, or for another pass
    unknown,  // the program has no such pass, or its message belongs to another one
  };
  // REQUIRES: `schedule` is verified.
  ReplayedOperation(const Schedule& schedule, const ReplayedCall& call);
  ReplayedOperation(const ReplayedOperation&) = delete;
  ReplayedOperation& operator=(const ReplayedOperation&) = delete;
  ~ReplayedOperation();

  std::span<std::byte> input(int rank);
  std::span<const std::byte> output(int rank) const;

  // Fills the rank's input and begins. REQUIRES: the rank has not begun.
  void begin(int rank);
  Outcome play(int rank, const ReplayedPass& pass);
  // Returns the ranks whose messages the pass needs and that have not sent these messages yet.
  std::vector<int> missing(int rank, const ReplayedPass& pass) const;
  // Makes the next send from one rank to another that was not recorded, because a killed rank had
  // no time to record it. Also makes the receives and reductions that the send needs. If these need
  // data from another dead rank, that rank sends in the same way. Returns the number of messages
  // sent.
  std::size_t send_unrecorded(int from, int to, const std::function<bool(int)>& is_dead);
  // Returns true if all passes of the rank are done. REQUIRES: it has not returned true for this
  // rank before.
  bool finish(int rank);
  // Returns the ranks that a rank waits for, if it has begun and not finished.
  std::vector<Wait> waits(int rank) const;

 private:
  struct Rank;
  static Outcome complete(Rank& rank, std::size_t pass);
  // Advances a pass, and all passes that it waits for, as far as possible.
  static Outcome catch_up(Rank& rank, std::size_t pass);
  // Returns the ranks whose messages delay a pass, directly or through passes that it waits for.
  std::vector<int> holds_up(int rank, std::size_t pass) const;
  void add_missing(int rank, std::size_t pass, std::vector<int>& missing) const;
  bool fits(const Rank& rank, std::size_t pass, const ReplayedPass& wanted) const;
  std::size_t find(const Rank& rank, const ReplayedPass& wanted) const;
  bool has_sent(int from, int to, const BoundOperand& source) const;

  sim::SimNetwork network_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace unisono::engine
