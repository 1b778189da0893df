// The moves of each chunk, step by step: data moves only within its chunk.
#pragma once

#include <cstddef>
#include <span>

#include "schedule/grouped.h"
#include "schedule/schedule.h"

namespace unisono {

using Moves = std::span<const Move* const>;

// Keeps the order of the schedule, which must outlive the result.
inline Grouped<const Move*> moves_by_chunk(const Schedule& schedule) {
  return {static_cast<std::size_t>(schedule.chunks), [&schedule](const auto& visit) {
            for (const Move& move : schedule.moves) {
              for (int i = 0; i < move.chunks; ++i) {
                visit(static_cast<std::size_t>(move.chunk + i), &move);
              }
            }
          }};
}

// Calls each(moves) for the moves of every step: all reads of a step happen before its writes.
template <typename Each>
void for_steps(Moves moves, const Each& each) {
  for (std::size_t begin = 0; begin < moves.size();) {
    std::size_t end = begin + 1;
    while (end < moves.size() && moves[end]->step == moves[begin]->step) {
      ++end;
    }
    each(moves.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace unisono
