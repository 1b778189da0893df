// One collective of a recording, played again: the executors of all its ranks on a simulated
// network, one pass after the other, as somebody wants them.
//
// The network gives a message to its reader at once and has room for all, and no send rides along
// with another pass: so a pass goes on when it is asked to, and only the dependencies of the
// program can keep it from that.
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

// What the ranks called, all of them alike. No v-form, no premul_sum, and no function of the
// user's.
struct ReplayedCall {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::u8;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;  // as in Call
  bool multicast = false;
  std::vector<bool> in_place = {};  // [rank]: of the group
};

// As an event says it; `peer`: of the group, -1: all, or none.
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
    unknown,  // the program has no such pass, or its message is of another one
  };
  // `schedule` is verified.
  ReplayedOperation(const Schedule& schedule, const ReplayedCall& call);
  ReplayedOperation(const ReplayedOperation&) = delete;
  ReplayedOperation& operator=(const ReplayedOperation&) = delete;
  ~ReplayedOperation();

  std::span<std::byte> input(int rank);
  std::span<const std::byte> output(int rank) const;

  // The input is filled. REQUIRES: it has not begun.
  void begin(int rank);
  Outcome play(int rank, const ReplayedPass& pass);
  // Whose messages the pass needs that they have not sent.
  std::vector<int> missing(int rank, const ReplayedPass& pass) const;
  // The next send from one rank to another, though nobody recorded it, with what it has to take and
  // to reduce before: a rank that is killed has no time to write that down. What it takes for that
  // from a rank that is dead, too, that one sends in the same way. Returns how many messages were
  // sent.
  std::size_t send_unrecorded(int from, int to, const std::function<bool(int)>& is_dead);
  // Whether all its passes are done. REQUIRES: it has not been so before.
  bool finish(int rank);
  // For whom a rank waits that has begun and has not finished.
  std::vector<Wait> waits(int rank) const;

 private:
  struct Rank;
  static Outcome complete(Rank& rank, std::size_t pass);
  // With all that it waits for and that can be done.
  static Outcome catch_up(Rank& rank, std::size_t pass);
  // Whose messages hold a pass up, over all that it waits for.
  std::vector<int> holds_up(int rank, std::size_t pass) const;
  void add_missing(int rank, std::size_t pass, std::vector<int>& missing) const;
  bool fits(const Rank& rank, std::size_t pass, const ReplayedPass& wanted) const;
  std::size_t find(const Rank& rank, const ReplayedPass& wanted) const;
  bool has_sent(int from, int to, const BoundOperand& source) const;

  sim::SimNetwork network_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace unisono::engine
