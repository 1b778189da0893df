#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "msccl/export.h"
#include "schedule/cells.h"
#include "schedule/dependencies.h"
#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::msccl {
namespace {

constexpr int kLocal = -1;  // the block for what stays within a GPU

// Which step of which thread block an event of the schedule became.
struct Done {
  int block = -1;
  int step = -1;
};

class Exporter {
 public:
  Exporter(const Schedule& schedule, Aliasing aliasing)
      : schedule_(schedule),
        first_writes_(schedule),
        aliasing_(aliasing),
        dependencies_(dependencies(schedule, aliasing)),
        done_(2 * schedule.moves.size()),
        slots_(static_cast<std::size_t>(schedule.ranks)),
        blocks_(static_cast<std::size_t>(schedule.ranks)) {}

  MscclProgram run() {
    begin();
    copy_own_input();
    for (std::size_t first = 0; first < schedule_.moves.size();) {
      std::size_t last = first;
      while (last < schedule_.moves.size() &&
             schedule_.moves[last].step == schedule_.moves[first].step) {
        ++last;
      }
      add_step(first, last);
      first = last;
    }
    return std::move(program_);
  }

 private:
  void begin() {
    const std::string_view word = word_of(schedule_.collective);
    if (word.empty()) {
      throw Error(ErrorCode::usage,
                  fmt::format("MSCCL's files have no word for {}\nthey say all_reduce, all_gather, "
                              "reduce_scatter, all_to_all, broadcast and reduce",
                              to_string(schedule_.collective)));
    }
    program_.name = fmt::format("{}_{}", to_string(schedule_.collective), schedule_.algorithm);
    program_.collective = schedule_.collective;
    program_.root = schedule_.root;
    program_.in_place = aliasing_ == Aliasing::in_place;
    const bool is_pairs = traits_of(schedule_.collective).input == Holding::pairs;
    program_.chunks_per_loop = is_pairs ? schedule_.chunks / schedule_.ranks : schedule_.chunks;
    number_scratch();
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      program_.gpus.push_back({.chunks = {executors::input_chunks(schedule_, rank),
                                          executors::output_chunks(schedule_, rank),
                                          static_cast<int>(slots(rank).size())}});
    }
  }

  // The chunks that a rank keeps in scratch, in their order, so that a run of chunks stays a run.
  void number_scratch() {
    for (const Move& move : schedule_.moves) {
      for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
        if (move.target == Buffer::scratch) {
          slots(move.to).emplace(chunk, 0);
        }
      }
    }
    for (std::map<int, int>& of_rank : slots_) {
      int next = 0;
      for (auto& [chunk, slot] : of_rank) {
        slot = next++;
      }
    }
  }

  // Output that no move writes and that must hold the rank's own input.
  void copy_own_input() {
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
        if (needs_output(schedule_, rank, chunk) && has_input(schedule_, rank, chunk) &&
            first_writes_.step({.rank = rank, .buffer = Buffer::output, .chunk = chunk}) < 0) {
          append(rank, kLocal,
                 {.type = StepType::copy,
                  .source = place({.rank = rank, .buffer = Buffer::input, .chunk = chunk}),
                  .target = place({.rank = rank, .buffer = Buffer::output, .chunk = chunk})});
        }
      }
    }
  }

  // Within a step all reads come before all writes.
  void add_step(std::size_t first, std::size_t last) {
    std::vector<std::size_t> local;
    for (std::size_t index = first; index < last; ++index) {
      const Move& move = schedule_.moves[index];
      if (move.from == move.to) {
        local.push_back(index);
        continue;
      }
      for (const Piece& piece : pieces(move)) {
        note(read_event(index), add(move.from, move.to, dependencies_.of(read_event(index)),
                                    {.type = StepType::send,
                                     .source = piece.source,
                                     .target = piece.target,
                                     .chunks = piece.chunks,
                                     .schedule_step = move.step}));
      }
    }
    while (!local.empty()) {
      const std::size_t before = local.size();
      std::erase_if(local, [&](std::size_t index) { return try_local(index); });
      if (local.size() == before) {
        throw Error(ErrorCode::internal, "local moves of a step wait for each other");
      }
    }
    for (std::size_t index = first; index < last; ++index) {
      const Move& move = schedule_.moves[index];
      if (move.from == move.to) {
        continue;
      }
      for (const Piece& piece : pieces(move)) {
        const bool reduces = move.combine == Combine::reduce;
        note(write_event(index),
             add(move.to, receive_key(move.from), dependencies_.of(write_event(index)),
                 {.type = reduces ? StepType::receive_reduce_copy : StepType::receive,
                  .source = reduces ? piece.before : piece.source,
                  .target = piece.target,
                  .chunks = piece.chunks,
                  .schedule_step = move.step}));
      }
    }
  }

  bool try_local(std::size_t index) {
    std::vector<std::uint32_t> waits;
    for (const std::uint32_t event : {read_event(index), write_event(index)}) {
      for (const std::uint32_t on : dependencies_.of(event)) {
        if (on / 2 == index) {
          continue;
        }
        if (!done_[on]) {
          return false;
        }
        waits.push_back(on);
      }
    }
    const Move& move = schedule_.moves[index];
    for (const Piece& piece : pieces(move)) {
      Step step{.type = StepType::copy,
                .source = piece.source,
                .target = piece.target,
                .chunks = piece.chunks,
                .schedule_step = move.step};
      if (move.combine == Combine::reduce) {
        if (piece.before != piece.target) {
          step.source = piece.before;
          note(write_event(index), add(move.to, kLocal, waits, step));
          step.source = piece.source;
        }
        step.type = StepType::reduce;
      }
      const Done done = add(move.to, kLocal, waits, step);
      note(read_event(index), done);
      note(write_event(index), done);
    }
    return true;
  }

  // Chunks of a move that lie beside each other wherever they are read or written.
  struct Piece {
    BufferPlace source;
    BufferPlace target;
    BufferPlace before;  // where the target's value is before the move
    int chunks = 1;
  };
  std::vector<Piece> pieces(const Move& move) const {
    std::vector<Piece> result;
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      const Cell target{.rank = move.to, .buffer = move.target, .chunk = chunk};
      const Cell source{.rank = move.from, .buffer = move.source, .chunk = chunk};
      Piece next{.source = place(first_writes_.read_through(source, move.step)),
                 .target = place(target),
                 .before = move.combine == Combine::reduce
                               ? place(first_writes_.read_through(target, move.step))
                               : BufferPlace{}};
      if (!result.empty()) {
        Piece& last = result.back();
        if (follows(last.source, next.source, last.chunks) &&
            follows(last.target, next.target, last.chunks) &&
            (move.combine == Combine::replace || follows(last.before, next.before, last.chunks))) {
          ++last.chunks;
          continue;
        }
      }
      result.push_back(next);
    }
    return result;
  }
  static bool follows(const BufferPlace& first, const BufferPlace& next, int chunks) {
    return first.buffer == next.buffer && first.offset + chunks == next.offset;
  }

  BufferPlace place(const Cell& cell) const {
    switch (cell.buffer) {
      case Buffer::input:
        return {.buffer = cell.buffer,
                .offset = executors::input_offset(schedule_, cell.rank, cell.chunk)};
      case Buffer::output:
        return {.buffer = cell.buffer,
                .offset = executors::output_offset(schedule_, cell.rank, cell.chunk)};
      case Buffer::scratch:
        break;
    }
    return {.buffer = cell.buffer,
            .offset = slots_[static_cast<std::size_t>(cell.rank)].at(cell.chunk)};
  }

  void note(std::uint32_t event, Done done) { done_[event] = done; }

  // Behind the steps that `waits` became: one of them a step can wait for, others need a nop each.
  Done add(int rank, int key, std::span<const std::uint32_t> waits, Step step) {
    const int own = block(rank, key);
    std::map<int, int> last;  // of each other block
    for (const std::uint32_t event : waits) {
      const std::optional<Done>& on = done_[event];
      if (on && owner_of(event) == rank && on->block != own) {
        int& at = last.emplace(on->block, on->step).first->second;
        at = std::max(at, on->step);
      }
    }
    std::vector<Step>& steps = block_of(rank, own).steps;
    for (auto on = last.begin(); on != last.end(); ++on) {
      block_of(rank, on->first).steps[static_cast<std::size_t>(on->second)].tells = true;
      if (std::next(on) == last.end()) {
        step.depends_on_block = on->first;
        step.depends_on_step = on->second;
      } else {
        steps.push_back({.type = StepType::nop,
                         .chunks = 0,
                         .depends_on_block = on->first,
                         .depends_on_step = on->second,
                         .schedule_step = step.schedule_step});
      }
    }
    return append(rank, key, step);
  }

  int owner_of(std::uint32_t event) const {
    const Move& move = schedule_.moves[event / 2];
    return event % 2 == 0 ? move.from : move.to;
  }

  Done append(int rank, int key, const Step& step) {
    const int own = block(rank, key);
    std::vector<Step>& steps = block_of(rank, own).steps;
    steps.push_back(step);
    return {.block = own, .step = static_cast<int>(steps.size()) - 1};
  }

  // A block is known by the peer that it sends to, by the one that it receives from, or as local.
  int receive_key(int peer) const { return schedule_.ranks + peer; }
  int block(int rank, int key) {
    const auto [found, is_new] =
        blocks_[static_cast<std::size_t>(rank)].try_emplace(key, gpu(rank).blocks.size());
    if (is_new) {
      const bool receives = key >= schedule_.ranks;
      gpu(rank).blocks.push_back(
          {.send = receives ? -1 : key, .receive = receives ? key - schedule_.ranks : -1});
    }
    return static_cast<int>(found->second);
  }
  Gpu& gpu(int rank) { return program_.gpus[static_cast<std::size_t>(rank)]; }
  ThreadBlock& block_of(int rank, int index) {
    return gpu(rank).blocks[static_cast<std::size_t>(index)];
  }
  std::map<int, int>& slots(int rank) { return slots_[static_cast<std::size_t>(rank)]; }

  const Schedule& schedule_;
  FirstWrites first_writes_;
  Aliasing aliasing_;
  Dependencies dependencies_;
  std::vector<std::optional<Done>> done_;  // of each event
  std::vector<std::map<int, int>> slots_;  // chunk -> place in scratch, of each rank
  std::vector<std::map<int, std::size_t>> blocks_;
  MscclProgram program_;
};

}  // namespace

MscclProgram to_program(const Schedule& schedule) {
  return to_program(schedule,
                    verify_in_place(schedule).empty() ? Aliasing::in_place : Aliasing::none);
}

MscclProgram to_program(const Schedule& schedule, Aliasing aliasing) {
  return Exporter(schedule, aliasing).run();
}

}  // namespace unisono::msccl
