// The true data dependencies between the moves of a schedule.
//
// A move is two events: event 2m reads the source of move m; event 2m+1 writes its target (and
// reads the target first if the move reduces). An event depends on the write that it reads from. A
// write also depends on the previous write, and on the reads since then. Reads and writes refer to
// cells; within one step all reads come before all writes. A read that yields the input has no
// dependency, unless the call is in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace unisono {

enum class Aliasing : std::uint8_t { none, in_place };

struct Dependencies {
  std::vector<std::size_t> first;  // 2 * moves + 1 places in `events`
  std::vector<std::uint32_t> events;

  // Returns the predecessors of an event in ascending order, without duplicates and without the
  // event itself.
  std::span<const std::uint32_t> of(std::size_t event) const {
    return std::span(events).subspan(first[event], first[event + 1] - first[event]);
  }
};

constexpr std::uint32_t read_event(std::size_t move) {
  return static_cast<std::uint32_t>(2 * move);
}
constexpr std::uint32_t write_event(std::size_t move) {
  return static_cast<std::uint32_t>(2 * move + 1);
}

// REQUIRES: the structure of the schedule is correct (ranks, chunks and buffers in range).
Dependencies dependencies(const Schedule& schedule, Aliasing aliasing = Aliasing::none);

}  // namespace unisono
