#include "schedule/compose.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "schedule/cells.h"
#include "schedule/sort_by.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

class Embedder {
 public:
  Embedder(const Schedule& schedule, const Placement& placement)
      : schedule_(schedule), placement_(placement), first_writes_(schedule) {
    check();
    result_.collective = placement.collective;
    result_.algorithm = schedule.algorithm;
    result_.ranks = placement.ranks;
    result_.root = placement.root;
    result_.chunks = placement.chunks;
    result_.file = schedule.file;
  }

  Schedule run() && {
    std::vector<Move> moves;
    for (const Move& move : schedule_.moves) {
      for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
        place(move, chunk, moves);
      }
    }
    const int copies = result_.moves.empty() ? 0 : 1;  // the step of copies to scratch
    for (Move& move : moves) {
      move.step += copies;
    }
    result_.moves.insert(result_.moves.end(), moves.begin(), moves.end());
    result_.steps = schedule_.steps + copies;
    for (const Phase& phase : schedule_.phases) {
      const int first = phase.first_step == 0 ? 0 : phase.first_step + copies;
      result_.phases.push_back({.name = phase.name, .first_step = first});
    }
    return std::move(result_);
  }

 private:
  void check() const {
    const auto wrong = [](const std::string& what) {
      throw Error(
          ErrorCode::usage,
          "sub: " + what + "\nplace the schedule on ranks and chunks of the larger schedule");
    };
    if (placement_.members.size() != static_cast<std::size_t>(schedule_.ranks)) {
      wrong(std::to_string(placement_.members.size()) + " members for " +
            std::to_string(schedule_.ranks) + " ranks");
    }
    const std::set<int> members(placement_.members.begin(), placement_.members.end());
    if (members.size() != placement_.members.size() || *members.begin() < 0 ||
        *members.rbegin() >= placement_.ranks) {
      wrong("members are not different ranks of " + std::to_string(placement_.ranks));
    }
    const long last = placement_.first_chunk + (schedule_.chunks - 1L) * placement_.stride;
    if (placement_.width < 1 || placement_.stride < 0 || placement_.first_chunk < 0 ||
        last + placement_.width > placement_.chunks) {
      wrong("chunks beyond the " + std::to_string(placement_.chunks) + " of the larger schedule");
    }
  }

  // Returns the buffer in which the smaller schedule's data lies between the parts of the larger
  // schedule.
  Buffer home(int rank, int chunk) const {
    return needs_output(result_, rank, chunk) ? Buffer::output : Buffer::scratch;
  }

  Buffer buffer(Cell cell, int rank, int chunk) const {
    switch (cell.buffer) {
      case Buffer::input:
        return placement_.begins ? Buffer::input : home(rank, chunk);
      case Buffer::output:
        return home(rank, chunk);
      case Buffer::scratch:
        break;
    }
    return Buffer::scratch;
  }

  void place(const Move& move, int chunk, std::vector<Move>& moves) {
    const Cell source = first_writes_.read_through({move.from, move.source, chunk}, move.step);
    const Cell target{move.to, move.target, chunk};
    const int from = placement_.members[static_cast<std::size_t>(move.from)];
    const int to = placement_.members[static_cast<std::size_t>(move.to)];
    const int first = placement_.first_chunk + chunk * placement_.stride;
    if (move.combine == Combine::reduce && target.buffer == Buffer::scratch) {
      copy_to_scratch(target, move, to, first);
    }
    for (int placed = first; placed < first + placement_.width; ++placed) {
      const Buffer from_buffer = buffer(source, from, placed);
      const Buffer to_buffer = buffer(target, to, placed);
      if (!moves.empty() && extends(moves.back(), move, from, to, placed, from_buffer, to_buffer)) {
        ++moves.back().chunks;
        continue;
      }
      moves.push_back({.step = move.step,
                       .from = from,
                       .to = to,
                       .chunk = placed,
                       .source = from_buffer,
                       .target = to_buffer,
                       .combine = move.combine,
                       .line = move.line});
    }
  }

  static bool extends(const Move& last, const Move& move, int from, int to, int chunk,
                      Buffer source, Buffer target) {
    const auto key = [](const Move& m) {
      return std::tuple(m.step, m.from, m.to, m.source, m.target, m.combine, m.line);
    };
    return last.chunk + last.chunks == chunk &&
           key(last) == std::tuple(move.step, from, to, source, target, move.combine, move.line);
  }

  // Copies a rank's input to scratch before a sum in scratch starts. In the smaller schedule such a
  // sum starts with the input by itself; in the larger schedule the input is elsewhere, and scratch
  // may hold other data.
  void copy_to_scratch(Cell target, const Move& move, int to, int first) {
    if (placement_.begins || first_writes_.step(target) != move.step) {
      return;
    }
    for (int chunk = first; chunk < first + placement_.width; ++chunk) {
      if (home(to, chunk) == Buffer::output) {
        result_.moves.push_back({.step = 0,
                                 .from = to,
                                 .to = to,
                                 .chunk = chunk,
                                 .source = Buffer::output,
                                 .target = Buffer::scratch,
                                 .line = move.line});
      }
    }
  }

  const Schedule& schedule_;
  const Placement& placement_;
  FirstWrites first_writes_;
  Schedule result_;
};

void require_same_shape(const char* who, const Schedule& a, const Schedule& b) {
  const auto shape = [](const Schedule& schedule) {
    return std::tuple(schedule.collective, schedule.ranks, schedule.root, schedule.chunks);
  };
  if (shape(a) != shape(b)) {
    throw Error(ErrorCode::usage,
                std::string(who) +
                    ": schedules of different collective, ranks, root or chunks\nplace both with "
                    "sub() in the same larger schedule");
  }
}

// Drops the lines if the files differ: a line has a meaning only within one file.
void join_files(Schedule& whole, const Schedule& part) {
  if (whole.file == part.file) {
    return;
  }
  whole.file.clear();
  for (Move& move : whole.moves) {
    move.line = 0;
  }
}

// Adds all moves and phases of `part`, `shift` steps later.
void add(Schedule& whole, const Schedule& part, int shift) {
  for (Move move : part.moves) {
    move.step += shift;
    whole.moves.push_back(move);
  }
  for (const Phase& phase : part.phases) {
    const int first = phase.first_step + shift;
    const bool known = std::any_of(
        whole.phases.begin(), whole.phases.end(),
        [&](const Phase& other) { return other.name == phase.name && other.first_step == first; });
    if (!known) {
      whole.phases.push_back({.name = phase.name, .first_step = first});
    }
  }
  whole.steps = std::max(whole.steps, part.steps + shift);
  join_files(whole, part);
}

}  // namespace

Schedule sub(const Schedule& schedule, const Placement& placement) {
  return Embedder(schedule, placement).run();
}

Schedule beside(const Schedule& a, const Schedule& b) {
  require_same_shape("beside", a, b);
  Schedule whole = a;
  add(whole, b, 0);
  sort_by(whole.moves, [](const Move& move) { return move.step; });
  sort_by(whole.phases, [](const Phase& phase) { return phase.first_step; });
  return whole;
}

Schedule then(const Schedule& a, const Schedule& b) {
  require_same_shape("then", a, b);
  Schedule whole = a;
  add(whole, b, a.steps);
  return whole;
}

}  // namespace unisono
