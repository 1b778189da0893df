#include <fmt/format.h>

#include <vector>

#include "msccl/cell_places.h"
#include "msccl/export.h"
#include "msccl/step_writer.h"
#include "schedule/cells.h"
#include "schedule/dependencies.h"
#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::msccl {
namespace {

// Returns the program with its GPUs, without steps.
MscclProgram begin(const Schedule& schedule, const CellPlaces& places, Aliasing aliasing) {
  if (word_of(schedule.collective).empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("MSCCL's format does not support {}\nit supports all_reduce, "
                            "all_gather, reduce_scatter, all_to_all, broadcast and reduce",
                            to_string(schedule.collective)));
  }
  const bool is_pairs = traits_of(schedule.collective).input == Holding::pairs;
  MscclProgram program{
      .name = fmt::format("{}_{}", to_string(schedule.collective), schedule.algorithm),
      .collective = schedule.collective,
      .root = schedule.root,
      .chunks_per_loop = is_pairs ? schedule.chunks / schedule.ranks : schedule.chunks,
      .in_place = aliasing == Aliasing::in_place};
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    program.gpus.push_back(
        {.chunks = {executors::input_chunks(schedule, rank),
                    executors::output_chunks(schedule, rank), places.scratch_chunks(rank)}});
  }
  return program;
}

// Copies the rank's own input to outputs that must hold it and that no move writes.
void copy_own_input(const Schedule& schedule, const CellPlaces& places, StepWriter& writer) {
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      const Cell input{.rank = rank, .buffer = Buffer::input, .chunk = chunk};
      const Cell output{.rank = rank, .buffer = Buffer::output, .chunk = chunk};
      if (needs_output(schedule, rank, chunk) && has_input(schedule, rank, chunk) &&
          !places.is_written(output)) {
        writer.append(
            {.rank = rank},
            {.type = StepType::copy, .source = places.of(input), .target = places.of(output)});
      }
    }
  }
}

// Converts moves to steps.
class MoveWriter {
 public:
  MoveWriter(const Schedule& schedule, const CellPlaces& places, Aliasing aliasing,
             StepWriter& writer)
      : schedule_(schedule),
        places_(places),
        dependencies_(dependencies(schedule, aliasing)),
        writer_(writer) {}

  // Writes the moves of one step, from `first` up to but not including `last`. Within a step all
  // reads come before all writes.
  void write_step(std::size_t first, std::size_t last) {
    std::vector<std::size_t> local;
    for (std::size_t index = first; index < last; ++index) {
      if (is_local(index)) {
        local.push_back(index);
      } else {
        send(index);
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
      if (!is_local(index)) {
        receive(index);
      }
    }
  }

 private:
  bool is_local(std::size_t index) const {
    return schedule_.moves[index].from == schedule_.moves[index].to;
  }
  void send(std::size_t index);
  void receive(std::size_t index);
  // Returns false if the data for which it waits is not there yet.
  bool try_local(std::size_t index);

  const Schedule& schedule_;
  const CellPlaces& places_;
  Dependencies dependencies_;
  StepWriter& writer_;
};

void MoveWriter::send(std::size_t index) {
  const Move& move = schedule_.moves[index];
  const std::uint32_t event = read_event(index);
  for (const MovePiece& piece : places_.pieces_of(move)) {
    writer_.note(event, writer_.add({.rank = move.from, .send = move.to}, dependencies_.of(event),
                                    {.type = StepType::send,
                                     .source = piece.source,
                                     .target = piece.target,
                                     .chunks = piece.chunks,
                                     .schedule_step = move.step}));
  }
}

void MoveWriter::receive(std::size_t index) {
  const Move& move = schedule_.moves[index];
  const std::uint32_t event = write_event(index);
  const bool reduces = move.combine == Combine::reduce;
  for (const MovePiece& piece : places_.pieces_of(move)) {
    writer_.note(event,
                 writer_.add({.rank = move.to, .receive = move.from}, dependencies_.of(event),
                             {.type = reduces ? StepType::receive_reduce_copy : StepType::receive,
                              .source = reduces ? piece.before : piece.source,
                              .target = piece.target,
                              .chunks = piece.chunks,
                              .schedule_step = move.step}));
  }
}

bool MoveWriter::try_local(std::size_t index) {
  std::vector<std::uint32_t> waits;
  for (const std::uint32_t event : {read_event(index), write_event(index)}) {
    for (const std::uint32_t on : dependencies_.of(event)) {
      if (on / 2 == index) {
        continue;
      }
      if (!writer_.is_noted(on)) {
        return false;
      }
      waits.push_back(on);
    }
  }
  const Move& move = schedule_.moves[index];
  const BlockKey local{.rank = move.to};
  for (const MovePiece& piece : places_.pieces_of(move)) {
    Step step{.type = StepType::copy,
              .source = piece.source,
              .target = piece.target,
              .chunks = piece.chunks,
              .schedule_step = move.step};
    if (move.combine == Combine::reduce) {
      if (piece.before != piece.target) {
        step.source = piece.before;
        writer_.note(write_event(index), writer_.add(local, waits, step));
        step.source = piece.source;
      }
      step.type = StepType::reduce;
    }
    const Written written = writer_.add(local, waits, step);
    writer_.note(read_event(index), written);
    writer_.note(write_event(index), written);
  }
  return true;
}

}  // namespace

MscclProgram to_program(const Schedule& schedule) {
  return to_program(schedule,
                    verify_in_place(schedule).empty() ? Aliasing::in_place : Aliasing::none);
}

MscclProgram to_program(const Schedule& schedule, Aliasing aliasing) {
  const CellPlaces places(schedule);
  MscclProgram program = begin(schedule, places, aliasing);
  StepWriter writer(schedule, program);
  copy_own_input(schedule, places, writer);
  MoveWriter moves(schedule, places, aliasing, writer);
  for (std::size_t first = 0; first < schedule.moves.size();) {
    std::size_t last = first;
    while (last < schedule.moves.size() &&
           schedule.moves[last].step == schedule.moves[first].step) {
      ++last;
    }
    moves.write_step(first, last);
    first = last;
  }
  return program;
}

}  // namespace unisono::msccl
