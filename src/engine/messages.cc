// Lowering steps over the whole schedule: splits moves into single chunks, joins them (*multicast*,
// *coalesce*), and numbers the messages of each lane.
#include "engine/messages.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

namespace unisono::engine {
namespace {

struct Cell {
  int version = 0;     // how often it has been written so far
  bool single = true;  // no two contributions have been summed in it
};

// The output and scratch cells of all ranks.
class Cells {
 public:
  explicit Cells(const Schedule& schedule)
      : chunks_(static_cast<std::size_t>(schedule.chunks)),
        cells_(static_cast<std::size_t>(schedule.ranks) * 2 * chunks_) {}
  Cell& at(int rank, Buffer buffer, int chunk) {
    const std::size_t half = buffer == Buffer::scratch ? 1 : 0;
    return cells_[(static_cast<std::size_t>(rank) * 2 + half) * chunks_ +
                  static_cast<std::size_t>(chunk)];
  }

 private:
  std::size_t chunks_;
  std::vector<Cell> cells_;
};

struct UnitMove {
  Move move;  // one chunk
  OperandPlace source = OperandPlace::input;
  int version = 0;
  bool single = true;  // the source
  bool single_target = true;
  int group = -1;  // its multicast
};

OperandPlace operand_of(Buffer buffer) {
  return buffer == Buffer::input    ? OperandPlace::input
         : buffer == Buffer::output ? OperandPlace::output
                                    : OperandPlace::scratch;
}

// Returns one move per chunk, and replaces its source by the cell that is really read: a cell that
// was never written reads as the input.
std::vector<UnitMove> split(const Schedule& schedule) {
  std::vector<UnitMove> units;
  Cells cells(schedule);
  const auto& moves = schedule.moves;
  for (std::size_t first = 0; first < moves.size();) {
    std::size_t last = first;
    const std::size_t first_unit = units.size();
    for (; last < moves.size() && moves[last].step == moves[first].step; ++last) {
      for (int i = 0; i < moves[last].chunks; ++i) {
        UnitMove unit{.move = moves[last]};
        unit.move.chunk += i;
        unit.move.chunks = 1;
        const Move& move = unit.move;
        if (move.source != Buffer::input) {
          const Cell& cell = cells.at(move.from, move.source, move.chunk);
          unit.version = cell.version;
          unit.single = cell.single;
          unit.source = unit.version == 0 ? OperandPlace::input : operand_of(move.source);
        }
        units.push_back(unit);
      }
    }
    for (const bool local : {true, false}) {  // in the order of a program's passes
      for (std::size_t i = first_unit; i < units.size(); ++i) {
        UnitMove& unit = units[i];
        if ((unit.move.from == unit.move.to) != local) {
          continue;
        }
        Cell& cell = cells.at(unit.move.to, unit.move.target, unit.move.chunk);
        unit.single_target = cell.single;
        cell.single = unit.single && unit.move.combine == Combine::replace;
        ++cell.version;
      }
    }
    first = last;
  }
  return units;
}

// Joins the moves of one unchanged cell to all other ranks, at any steps, to one message that all
// ranks read.
int group_multicasts(std::vector<UnitMove>& units, int ranks) {
  using Key = std::tuple<int, OperandPlace, int, int>;  // from, place, chunk, version
  std::map<Key, std::vector<std::size_t>> same_cell;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const UnitMove& unit = units[i];
    if (unit.move.from != unit.move.to && unit.move.code == MoveCode::none) {
      same_cell[{unit.move.from, unit.source, unit.move.chunk, unit.version}].push_back(i);
    }
  }
  int groups = 0;
  for (const auto& [key, indices] : same_cell) {
    std::vector<bool> reached(static_cast<std::size_t>(ranks));
    for (const std::size_t i : indices) {
      reached[static_cast<std::size_t>(units[i].move.to)] = true;
    }
    const auto distinct = std::count(reached.begin(), reached.end(), true);
    if (distinct == ranks - 1 && indices.size() == static_cast<std::size_t>(ranks - 1)) {
      for (const std::size_t i : indices) {
        units[i].group = groups;
      }
      ++groups;
    }
  }
  return groups;
}

// The blocks of a code begin again with each chunk, so that a forwarded chunk has the same blocks
// again.
bool continues(const UnitMove& unit, const UnitMove& previous) {
  const Move& a = previous.move;
  const Move& b = unit.move;
  return a.step == b.step && a.from == b.from && a.to == b.to && a.source == b.source &&
         a.target == b.target && a.combine == b.combine && previous.source == unit.source &&
         previous.single == unit.single && previous.single_target == unit.single_target &&
         unit.group < 0 && previous.group < 0 && b.chunk == a.chunk + 1 &&
         a.code == MoveCode::none && b.code == MoveCode::none;
}

}  // namespace

Messages plan_messages(const Schedule& schedule, const LowerOptions& options) {
  std::vector<UnitMove> units = split(schedule);
  const bool multicast = options.multicast && schedule.ranks > 2;
  const int groups = multicast ? group_multicasts(units, schedule.ranks) : 0;
  std::vector<int> message_of_group(static_cast<std::size_t>(groups), -1);
  const auto n = static_cast<std::size_t>(schedule.ranks);
  std::vector<int> sent(
      n * (n + 1));  // messages so far, by (from, to); the last column is the multicast
  Messages plan;

  for (std::size_t i = 0; i < units.size(); ++i) {
    const UnitMove& unit = units[i];
    const Move& move = unit.move;
    const bool extends = options.contiguous && i > 0 && continues(unit, units[i - 1]);
    if (move.from == move.to) {
      if (extends) {
        ++plan.locals.back().chunks;
        continue;
      }
      plan.locals.push_back({.step = move.step,
                             .rank = move.to,
                             .chunk = move.chunk,
                             .source = unit.source,
                             .single = unit.single,
                             .target = move.target,
                             .single_target = unit.single_target,
                             .combine = move.combine,
                             .code = move.code});
      continue;
    }
    if (extends) {
      ++plan.messages.back().chunks;
      continue;
    }
    int message = unit.group < 0 ? -1 : message_of_group[static_cast<std::size_t>(unit.group)];
    if (message < 0) {
      const std::size_t column = unit.group < 0 ? static_cast<std::size_t>(move.to) : n;
      message = static_cast<int>(plan.messages.size());
      plan.messages.push_back(
          {.step = move.step,
           .from = move.from,
           .to = unit.group < 0 ? move.to : -1,
           .chunk = move.chunk,
           .source = unit.source,
           .single = unit.single,
           .code = move.code,
           .ordinal = sent[static_cast<std::size_t>(move.from) * (n + 1) + column]++});
      if (unit.group >= 0) {
        message_of_group[static_cast<std::size_t>(unit.group)] = message;
      }
    }
    plan.arrivals.push_back({.step = move.step,
                             .to = move.to,
                             .message = message,
                             .target = move.target,
                             .single_target = unit.single_target,
                             .combine = move.combine});
  }
  return plan;
}

}  // namespace unisono::engine
