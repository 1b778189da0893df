#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "msccl/export.h"
#include "msccl/memory.h"
#include "msccl/order.h"
#include "schedule/cells.h"
#include "schedule/sort_by.h"
#include "unisono/error.hpp"

namespace unisono::msccl {
namespace {

// What a place of a program holds, in the words of a schedule.
struct Held {
  int chunk = -1;           // -1: nothing
  Cell cell = {};           // where a schedule keeps it
  bool is_coming = false;   // received, and not yet put anywhere: `cell` is the sender's
  std::size_t version = 0;  // how often that cell had been written when it was sent
};

class Importer {
 public:
  explicit Importer(const MscclProgram& program)
      : program_(program),
        table_(program),
        shape_(shape_of(program)),
        memory_(shape_, program.in_place && !program.out_of_place),
        sent_(table_.size()) {
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
        if (has_input(shape_, rank, chunk)) {
          const BufferPlace place{.buffer = Buffer::input,
                                  .offset = input_offset(shape_, rank, chunk)};
          held_[memory_.cell(rank, place)] = {
              .chunk = chunk, .cell = {.rank = rank, .buffer = Buffer::input, .chunk = chunk}};
        }
        if (needs_output(shape_, rank, chunk)) {
          const BufferPlace place{.buffer = Buffer::output,
                                  .offset = output_offset(shape_, rank, chunk)};
          outputs_[memory_.cell(rank, place)] = chunk;
        }
      }
    }
  }

  Schedule run() {
    const Order order = order_of(program_, table_, 0);
    for (const std::size_t index : order.steps) {
      step(index, order.sent_by[index]);
    }
    return finish();
  }

 private:
  void step(std::size_t index, std::size_t sender) {
    const Step& step = table_.step(index);
    const int rank = table_.id(index).gpu;
    for (int i = 0; i < step.chunks; ++i) {
      const std::uint64_t source = memory_.cell(rank, {step.source.buffer, step.source.offset + i});
      const std::uint64_t target = memory_.cell(rank, {step.target.buffer, step.target.offset + i});
      const Held came =
          traits_of(step.type).receives ? sent_[sender][static_cast<std::size_t>(i)] : Held{};
      switch (step.type) {
        case StepType::nop:
          break;
        case StepType::send:
          send(index, settled(rank, source));
          break;
        case StepType::receive:
          keep(rank, target, came);
          break;
        case StepType::receive_copy_send:
          put(rank, target, came);
          send(index, held_[target]);
          break;
        case StepType::receive_reduce_copy:
          add(rank, source, target, came);
          break;
        case StepType::receive_reduce_copy_send:
          add(rank, source, target, came);
          send(index, held_[target]);
          break;
        case StepType::receive_reduce_send:
          send(index, add_aside(rank, source, came));
          break;
        case StepType::copy:
          copy(rank, source, target);
          break;
        case StepType::reduce:
          reduce(rank, source, target);
          break;
      }
    }
  }

  void send(std::size_t index, Held held) {
    held.is_coming = true;
    held.version = times_[key(held.cell)].writes.size();
    sent_[index].push_back(held);
  }

  // Scratch may only pass on to a sum; then no copy is made.
  void keep(int rank, std::uint64_t target, const Held& came) {
    if (const auto found = outputs_.find(target);
        found != outputs_.end() && found->second == came.chunk) {
      return put(rank, target, came);
    }
    held_[target] = came;
  }

  // The cell of a schedule that a place is, for this chunk.
  Cell cell_of(int rank, std::uint64_t place, int chunk) const {
    const auto found = outputs_.find(place);
    const bool is_output = found != outputs_.end() && found->second == chunk;
    return {.rank = rank, .buffer = is_output ? Buffer::output : Buffer::scratch, .chunk = chunk};
  }

  void put(int rank, std::uint64_t target, const Held& came) {
    const Cell cell = cell_of(rank, target, came.chunk);
    claim(cell, target);
    move(came, cell, Combine::replace);
    held_[target] = {.chunk = came.chunk, .cell = cell};
  }

  // A schedule keeps a chunk once in scratch; the place that has it now loses it.
  void claim(const Cell& cell, std::uint64_t place) {
    const auto [found, is_new] = places_.try_emplace(cell_key(shape_, cell), place);
    if (!is_new && found->second != place) {
      const auto other = held_.find(found->second);
      if (other != held_.end() && !other->second.is_coming && other->second.cell == cell) {
        lost_[found->second] = cell.chunk;
        other->second.chunk = -1;
      }
      found->second = place;
    }
  }

  // What lies at a place, after it was put there if it was only on its way.
  Held settled(int rank, std::uint64_t place) {
    const auto lost = lost_.find(place);
    if (lost != lost_.end() && held_[place].chunk < 0) {
      throw Error(
          ErrorCode::usage,
          fmt::format("GPU {} keeps chunk {} at two places at once\na schedule has one place "
                      "for each chunk of a rank; verify proves the program as it is",
                      rank, lost->second));
    }
    if (held_[place].is_coming) {
      put(rank, place, held_[place]);
    }
    return held_[place];
  }

  // target = what came + source.
  void add(int rank, std::uint64_t source, std::uint64_t target, const Held& came) {
    const Held operand = settled(rank, source);
    const Cell cell = cell_of(rank, target, operand.chunk);
    move_own(operand, cell);
    claim(cell, target);
    move(came, cell, Combine::reduce);
    held_[target] = {.chunk = operand.chunk, .cell = cell};
  }

  // The same, kept nowhere in the program; a schedule keeps it where the rank keeps the chunk.
  Held add_aside(int rank, std::uint64_t source, const Held& came) {
    const Held operand = settled(rank, source);
    const bool is_output = needs_output(shape_, rank, operand.chunk);
    const Cell cell{.rank = rank,
                    .buffer = is_output ? Buffer::output : Buffer::scratch,
                    .chunk = operand.chunk};
    move_own(operand, cell);
    move(came, cell, Combine::reduce);
    return {.chunk = operand.chunk, .cell = cell};
  }

  void copy(int rank, std::uint64_t source, std::uint64_t target) {
    const Held from = settled(rank, source);
    const Cell cell = cell_of(rank, target, from.chunk);
    claim(cell, target);
    move_own(from, cell);
    held_[target] = {.chunk = from.chunk, .cell = cell};
  }

  // target += source, within the rank.
  void reduce(int rank, std::uint64_t source, std::uint64_t target) {
    const Held to = settled(rank, target);
    const Cell cell = cell_of(rank, target, to.chunk);
    move_own(to, cell);
    claim(cell, target);
    const Held from = held_[source];
    move(from.is_coming && step_of(from, cell) ? from : settled(rank, source), cell,
         Combine::reduce);
    held_[target] = {.chunk = to.chunk, .cell = cell};
  }

  // Brings the rank's own value to `cell`, unless a read of the cell gives it already.
  void move_own(const Held& held, const Cell& cell) {
    const bool reads_through =
        held.cell.buffer == Buffer::input && times_[key(cell)].writes.empty();
    if (held.cell != cell && !reads_through) {
      move(held, cell, Combine::replace);
    }
  }

  std::uint64_t key(const Cell& cell) const { return cell_key(shape_, cell); }

  struct Times {
    std::vector<int> writes;  // the steps that write the cell, in their order
    int read = 0;             // the last step that reads it

    int last_write() const { return writes.empty() ? -1 : writes.back(); }
  };

  // The first step in which the move sees what it is to see and spoils no read; none if the source
  // is overwritten before. Within a step all reads come before all writes.
  std::optional<int> step_of(const Held& from, const Cell& to) {
    const Times& read = times_[key(from.cell)];
    const Times& written = times_[key(to)];
    const std::size_t version = from.is_coming ? from.version : read.writes.size();
    const int seen = version == 0 ? 0 : read.writes[version - 1] + 1;
    const int step =
        std::max({seen, written.last_write() + 1, written.read, lanes_[{from.cell.rank, to.rank}]});
    if (version < read.writes.size() && step > read.writes[version]) {
      return std::nullopt;
    }
    return step;
  }

  void move(const Held& from, const Cell& to, Combine combine) {
    const std::optional<int> step = step_of(from, to);
    if (!step) {
      throw Error(
          ErrorCode::usage,
          fmt::format("GPU {} changes chunk {} after it was sent to GPU {}, where it is used "
                      "later\na schedule reads a chunk when it is used; verify proves the "
                      "program as it is",
                      from.cell.rank, from.chunk, to.rank));
    }
    // Between two ranks messages keep their order.
    lanes_[{from.cell.rank, to.rank}] = *step;
    int& read = times_[key(from.cell)].read;
    read = std::max(read, *step);
    times_[key(to)].writes.push_back(*step);
    moves_.push_back({.step = *step,
                      .from = from.cell.rank,
                      .to = to.rank,
                      .chunk = from.chunk,
                      .source = from.cell.buffer,
                      .target = to.buffer,
                      .combine = combine});
  }

  Schedule finish() {
    Schedule schedule = std::move(shape_);
    sort_by(moves_, [](const Move& move) { return move.step; });
    for (const Move& move : moves_) {
      if (!schedule.moves.empty()) {
        Move& last = schedule.moves.back();
        if (last.step == move.step && last.from == move.from && last.to == move.to &&
            last.chunk + last.chunks == move.chunk && last.source == move.source &&
            last.target == move.target && last.combine == move.combine) {
          ++last.chunks;
          continue;
        }
      }
      schedule.moves.push_back(move);
    }
    schedule.steps = schedule.moves.empty() ? 0 : schedule.moves.back().step + 1;
    return schedule;
  }

  const MscclProgram& program_;
  StepTable table_;
  Schedule shape_;
  BufferContents memory_;
  std::unordered_map<std::uint64_t, Held> held_;
  std::unordered_map<std::uint64_t, int> outputs_;           // place -> chunk that belongs there
  std::unordered_map<std::uint64_t, std::uint64_t> places_;  // cell -> place that has it
  std::unordered_map<std::uint64_t, int> lost_;              // place -> chunk it lost its cell for
  std::unordered_map<std::uint64_t, Times> times_;
  std::map<std::pair<int, int>, int> lanes_;
  std::vector<std::vector<Held>> sent_;
  std::vector<Move> moves_;
};

}  // namespace

Schedule to_schedule(const MscclProgram& program) {
  return Importer(program).run();
}

}  // namespace unisono::msccl
