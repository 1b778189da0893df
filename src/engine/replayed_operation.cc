#include "engine/replayed_operation.h"

#include <algorithm>

#include "base/dtypes.h"
#include "engine/around.h"
#include "engine/executor.h"
#include "schedule/schedule.h"

namespace unisono::engine {
namespace {

using trace::recording::EventKind;

constexpr std::size_t kSlot = std::size_t{64} << 10;
constexpr int kPlenty = 1 << 30;

sim::NetworkOptions network_of(const Schedule& schedule, bool multicast) {
  return {.ranks = schedule.ranks,
          .slot_bytes = kSlot,
          .multicast = multicast,
          .lane_bytes = std::size_t{1} << 60,
          .lane_slots = kPlenty};
}

// Separates fused sends from their passes: in the replay a send may lag behind, and finds its data
// in memory.
void part_sends(BoundProgram& program) {
  program.small = false;
  for (BoundPass& pass : program.passes) {
    pass.forwards = pass.forwards_end = 0;
    pass.transient = false;
  }
}

}  // namespace

struct ReplayedOperation::Rank {
  BoundProgram program = {};
  Extent extent = {};
  Around around = {};
  std::vector<std::byte> memory = {};  // input and output, which are one in place
  std::vector<std::byte> wide = {};    // both in the moved type, if that is wider
  std::size_t in = 0, out = 0;         // where they begin
  std::size_t element = 1;             // bytes of one element there
  std::vector<std::byte> scratch = {};
  std::vector<bool> played = {};
  // The other sources of a replayed pass; each of them has an event.
  std::vector<ReplayedPass> covered = {};
  std::unique_ptr<Executor> executor = {};
  bool begun = false;
};

ReplayedOperation::ReplayedOperation(const Schedule& schedule, const ReplayedCall& call)
    : network_(network_of(schedule, call.multicast)) {
  const CollectiveTraits& traits = traits_of(call.collective);
  const bool barrier = !moves_data(call.collective);
  const Dtype moved = moved_dtype(call.collective, call.dtype, call.op);
  const std::size_t element = barrier ? 1 : size_of(moved);
  const std::size_t widening = size_of(moved) / size_of(call.dtype);
  const bool pairs = cut_of(call.collective) == VectorCut::pairs;
  for (int r = 0; r < schedule.ranks; ++r) {
    auto rank = std::make_unique<Rank>();
    const bool in_place = call.in_place[static_cast<std::size_t>(r)];
    const auto places =
        lay_out(schedule, r, {.element = element, .count = barrier ? 1 : call.count});
    const Extent extent = extent_of(schedule, r, places);
    rank->extent = {.input = extent.input / widening, .output = extent.output / widening};
    if (fills_output(call.collective, call.op, r)) {
      rank->extent.output = rank->extent.input;
    }
    rank->around = around(call.collective, call.dtype, call.op, r, schedule.ranks);
    rank->program = engine::bind(
        lower(schedule, r,
              {.multicast = call.multicast, .in_place = in_place, .contiguous = !pairs}),
        places, element, extent);
    part_sends(rank->program);
    rank->element = size_of(call.dtype);
    rank->played.resize(rank->program.passes.size());
    rank->scratch.resize(rank->program.scratch_bytes);
    const auto mine = static_cast<std::size_t>(r);
    if (!in_place) {
      rank->out = rank->extent.input;
    } else if (traits.input == Holding::part) {
      rank->in = mine * rank->extent.input;
    } else if (traits.output == Holding::part) {
      rank->out = mine * rank->extent.output;
    }
    rank->memory.resize(std::max(rank->in + rank->extent.input, rank->out + rank->extent.output));
    std::byte* in = rank->memory.data() + rank->in;
    std::byte* out = rank->memory.data() + rank->out;
    if (widening != 1) {
      rank->wide.resize(extent.input + extent.output);
      in = rank->wide.data();
      out = in + extent.input;
    }
    rank->executor = std::make_unique<Executor>(network_.transport(r));
    rank->executor->start({.program = &rank->program,
                           .buffers = {in, out, rank->scratch.data()},
                           .output_bytes = extent.output,
                           .reducer = reducer_of(call.collective, call.op, rank->around),
                           .signature = 1});
    if (barrier) {
      rank->extent = {};  // its byte belongs to no buffer
    }
    ranks_.push_back(std::move(rank));
  }
}

ReplayedOperation::~ReplayedOperation() = default;

std::span<std::byte> ReplayedOperation::input(int rank) {
  Rank& mine = *ranks_[static_cast<std::size_t>(rank)];
  return {mine.memory.data() + mine.in, mine.extent.input};
}

std::span<const std::byte> ReplayedOperation::output(int rank) const {
  const Rank& mine = *ranks_[static_cast<std::size_t>(rank)];
  return {mine.memory.data() + mine.out, mine.extent.output};
}

void ReplayedOperation::begin(int rank) {
  Rank& mine = *ranks_[static_cast<std::size_t>(rank)];
  mine.begun = true;
  if (!mine.wide.empty()) {
    mine.around.before(mine.wide.data(), mine.memory.data() + mine.in,
                       mine.extent.input / mine.element, mine.around.scale);
  }
}

bool ReplayedOperation::fits(const Rank& rank, std::size_t which,
                             const ReplayedPass& wanted) const {
  const BoundPass& pass = rank.program.passes[which];
  const std::size_t bytes = pass.is_nothing ? 0 : pass.bytes;
  if (rank.played[which] || pass.bytes == 0 || pass.step != wanted.step || bytes != wanted.bytes ||
      pass.send != (wanted.kind == EventKind::send)) {
    return false;
  }
  const int ranks = static_cast<int>(ranks_.size());
  const BoundOperand* const operands = rank.program.operands.data();
  if (pass.send) {
    return operands[pass.targets].lane == (wanted.peer < 0 ? ranks : wanted.peer);
  }
  const auto sources = pass.sources_end - pass.sources;
  bool from_lanes = false;
  bool from_peer = false;
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    from_lanes |= operands[i].place == OperandPlace::lane;
    from_peer |= operands[i].place == OperandPlace::lane && operands[i].lane % ranks == wanted.peer;
  }
  return (sources == 1) == (wanted.kind != EventKind::reduce) &&
         (wanted.peer < 0 ? !from_lanes : from_peer);
}

// Finds a pass of the rank. Passes that use the same lane keep their order.
std::size_t ReplayedOperation::find(const Rank& rank, const ReplayedPass& wanted) const {
  std::size_t pass = 0;
  while (pass < rank.program.passes.size() && !fits(rank, pass, wanted)) {
    ++pass;
  }
  return pass;
}

ReplayedOperation::Outcome ReplayedOperation::complete(Rank& rank, std::size_t pass) {
  for (;;) {
    switch (rank.executor->poll_pass(static_cast<std::uint32_t>(pass))) {
      case Progress::finished:
        rank.played[pass] = true;
        return Outcome::done;
      case Progress::idle:
        return Outcome::waits;
      case Progress::failed:
        return Outcome::unknown;
      case Progress::advanced:
        break;
    }
  }
}

ReplayedOperation::Outcome ReplayedOperation::play(int which, const ReplayedPass& wanted) {
  Rank& rank = *ranks_[static_cast<std::size_t>(which)];
  const auto is_same = [&wanted](const ReplayedPass& one) {
    return one.kind == wanted.kind && one.peer == wanted.peer && one.step == wanted.step;
  };
  const auto covered = std::find_if(rank.covered.begin(), rank.covered.end(), is_same);
  if (covered != rank.covered.end()) {
    rank.covered.erase(covered);
    return Outcome::done;
  }
  const std::size_t pass = find(rank, wanted);
  if (pass == rank.program.passes.size()) {
    return Outcome::unknown;
  }
  const Outcome outcome = complete(rank, pass);
  if (outcome == Outcome::done && wanted.peer >= 0 && wanted.kind != EventKind::send) {
    const BoundPass& done = rank.program.passes[pass];
    bool skipped = false;
    for (std::uint32_t i = done.sources; i < done.sources_end; ++i) {
      const BoundOperand& source = rank.program.operands[i];
      const int peer = source.lane % static_cast<int>(ranks_.size());
      if (source.place == OperandPlace::lane && (skipped || peer != wanted.peer)) {
        rank.covered.push_back({.kind = wanted.kind, .peer = peer, .step = wanted.step});
      } else if (source.place == OperandPlace::lane) {
        skipped = true;
      }
    }
  }
  return outcome;
}

std::vector<int> ReplayedOperation::missing(int which, const ReplayedPass& wanted) const {
  const Rank& rank = *ranks_[static_cast<std::size_t>(which)];
  std::vector<int> result;
  if (const std::size_t found = find(rank, wanted); found != rank.program.passes.size()) {
    add_missing(which, found, result);
  }
  return result;
}

void ReplayedOperation::add_missing(int which, std::size_t pass, std::vector<int>& missing) const {
  const BoundProgram& program = ranks_[static_cast<std::size_t>(which)]->program;
  for (std::uint32_t i = program.passes[pass].sources; i < program.passes[pass].sources_end; ++i) {
    const BoundOperand& source = program.operands[i];
    const int from = source.lane % static_cast<int>(ranks_.size());
    if (source.place == OperandPlace::lane && !has_sent(from, which, source)) {
      missing.push_back(from);
    }
  }
}

std::vector<int> ReplayedOperation::holds_up(int which, std::size_t pass) const {
  const Rank& rank = *ranks_[static_cast<std::size_t>(which)];
  std::vector<int> missing;
  std::vector<bool> seen(rank.played.size());
  std::vector<std::size_t> open = {pass};
  while (!open.empty()) {
    const std::size_t one = open.back();
    open.pop_back();
    if (seen[one] || rank.played[one]) {
      continue;
    }
    seen[one] = true;
    const BoundPass& bound = rank.program.passes[one];
    if (!bound.send && bound.bytes != 0) {
      add_missing(which, one, missing);
    }
    for (std::uint32_t i = bound.waits; i < bound.waits_end; ++i) {
      open.push_back(static_cast<std::size_t>(rank.program.waits[i].pass));
    }
  }
  return missing;
}

bool ReplayedOperation::has_sent(int from, int to, const BoundOperand& source) const {
  const Rank& rank = *ranks_[static_cast<std::size_t>(from)];
  const int ranks = static_cast<int>(ranks_.size());
  const int wanted = source.lane < ranks ? to : ranks;
  for (std::size_t i = 0; i < rank.program.passes.size(); ++i) {
    const BoundPass& pass = rank.program.passes[i];
    const BoundOperand* const lane = rank.program.operands.data() + pass.targets;
    if (pass.send && pass.bytes != 0 && lane->lane == wanted && lane->sequence == source.sequence) {
      return rank.played[i];
    }
  }
  return false;
}

// Advances a pass and the passes before it. A pass records its event only after its fused sends, so
// it may have no event.
ReplayedOperation::Outcome ReplayedOperation::catch_up(Rank& rank, std::size_t wanted) {
  Outcome outcome = complete(rank, wanted);
  for (std::size_t i = 0; i < rank.played.size() && outcome == Outcome::waits; ++i) {
    const BoundPass& pass = rank.program.passes[i];
    if (!rank.played[i] && pass.bytes != 0 && !pass.send && complete(rank, i) == Outcome::done) {
      outcome = complete(rank, wanted);
    }
  }
  return outcome;
}

std::size_t ReplayedOperation::send_unrecorded(int from, int to,
                                               const std::function<bool(int)>& is_dead) {
  Rank& rank = *ranks_[static_cast<std::size_t>(from)];
  const std::size_t passes = rank.program.passes.size();
  const auto is_wanted = [&](std::size_t i) {
    const BoundPass& pass = rank.program.passes[i];
    const int lane = pass.send ? rank.program.operands[pass.targets].lane : -1;
    return !rank.played[i] && pass.bytes != 0 && pass.send &&
           (lane == to || lane == static_cast<int>(ranks_.size()));
  };
  std::size_t wanted = 0;
  while (wanted < passes && !is_wanted(wanted)) {
    ++wanted;
  }
  std::size_t sent = 0;
  if (wanted == passes || !rank.begun) {
    return sent;
  }
  // This ends, because a send never depends on later sends.
  while (catch_up(rank, wanted) != Outcome::done) {
    std::size_t more = 0;
    for (const int other : holds_up(from, wanted)) {
      more = more == 0 && is_dead(other) ? send_unrecorded(other, from, is_dead) : more;
    }
    if (more == 0) {
      return sent;
    }
    sent += more;
  }
  return sent + 1;
}

bool ReplayedOperation::finish(int which) {
  Rank& rank = *ranks_[static_cast<std::size_t>(which)];
  for (std::size_t i = 0; i < rank.played.size(); ++i) {
    if (!rank.played[i] && rank.program.passes[i].bytes != 0) {
      return false;
    }
  }
  if (rank.executor->poll() != Progress::finished) {
    return false;
  }
  if (rank.around.after != nullptr && rank.extent.output != 0) {
    std::byte* const output = rank.memory.data() + rank.out;
    const std::size_t count = rank.extent.output / rank.element;
    const std::byte* const made =
        rank.wide.empty() ? output
                          : rank.wide.data() + rank.wide.size() - count * rank.program.element;
    rank.around.after(output, made, count, rank.around.divisor);
  }
  return true;
}

std::vector<Wait> ReplayedOperation::waits(int which) const {
  const Rank& rank = *ranks_[static_cast<std::size_t>(which)];
  return rank.begun ? rank.executor->waits() : std::vector<Wait>{};
}

}  // namespace unisono::engine
