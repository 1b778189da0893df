#include "algorithms/hierarchy.h"

namespace unisono::algorithms {
namespace {

// The part of a vector of `chunks` that a rank's digits below a level select.
struct Range {
  int first = 0;
  int chunks = 1;
};

Range range_above(const Hierarchy& hierarchy, int rank, int level, int chunks) {
  Range range{.first = 0, .chunks = chunks};
  for (int below = 0; below < level; ++below) {
    range.chunks /= hierarchy.size(below);
    range.first += hierarchy.digit(rank, below) * range.chunks;
  }
  return range;
}

using Send = LevelSend (*)(int size, int digit, int step);

void exchange_range(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level, int chunks,
                    Combine combine, Send send, std::source_location where) {
  const int size = hierarchy.size(level);
  for (int step = 0; step < level_steps(size); ++step) {
    schedule.step();
    for (int rank = 0; rank < hierarchy.ranks(); ++rank) {
      const LevelSend sent = send(size, hierarchy.digit(rank, level), step);
      const Range range = range_above(hierarchy, rank, level, chunks);
      const int slot = range.chunks / size;
      schedule.move({.from = rank,
                     .to = hierarchy.with_digit(rank, level, sent.to),
                     .chunk = range.first + sent.first * slot,
                     .chunks = sent.count * slot,
                     .combine = combine},
                    where);
    }
  }
}

void exchange_parts(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                    Combine combine, Send send, std::source_location where) {
  const int size = hierarchy.size(level);
  const int stride = hierarchy.stride(level);
  const int block = stride * size;
  for (int step = 0; step < level_steps(size); ++step) {
    schedule.step();
    for (int rank = 0; rank < hierarchy.ranks(); ++rank) {
      const LevelSend sent = send(size, hierarchy.digit(rank, level), step);
      const int to = hierarchy.with_digit(rank, level, sent.to);
      for (int first = rank % stride; first < hierarchy.ranks(); first += block) {
        if (stride == 1) {
          schedule.move({.from = rank,
                         .to = to,
                         .chunk = first + sent.first,
                         .chunks = sent.count,
                         .combine = combine},
                        where);
          continue;
        }
        for (int slot = sent.first; slot < sent.first + sent.count; ++slot) {
          schedule.move(
              {.from = rank, .to = to, .chunk = first + slot * stride, .combine = combine}, where);
        }
      }
    }
  }
}

// Adds the phases of one level.
void add_phases(CompactSchedule& schedule, const Hierarchy& hierarchy, int level,
                const std::string& name, bool reduces, Send send) {
  const int size = hierarchy.size(level);
  const int stride = hierarchy.stride(level);
  const int slot = hierarchy.ranks() / (stride * size);
  const int steps = level_steps(size);
  const bool is_ring = !is_power_of_two(size);
  for (int step = 0; step < (is_ring ? 1 : steps); ++step) {
    CompactPhase phase{.name = name + " " + std::to_string(level),
                       .steps = is_ring ? steps : 1,
                       .each = {.times = stride, .apart = 1},
                       .all = {.times = slot, .apart = stride * size}};
    phase.messages.reserve(static_cast<std::size_t>(size));
    for (int digit = 0; digit < size; ++digit) {
      const LevelSend sent = send(size, digit, step);
      const int chunks = sent.count * slot;
      phase.messages.push_back({.from = digit * stride,
                                .to = sent.to * stride,
                                .chunks = chunks,
                                .reduced = reduces ? chunks : 0});
    }
    schedule.phases.push_back(std::move(phase));
  }
}

}  // namespace

Hierarchy::Hierarchy(Shape shape) : ranks_(shape.ranks) {
  int stride = 1;
  const auto add = [&](int size) {
    sizes_[static_cast<std::size_t>(levels_)] = size;
    strides_[static_cast<std::size_t>(levels_)] = stride;
    stride *= size;
    ++levels_;
  };
  for (const int size : shape.parameters.local) {
    if (size > 0) {
      add(size);
    }
  }
  add(shape.ranks / stride);
}

int Hierarchy::meet(int a, int b) const {
  int found = -1;
  for (int level = 0; level < levels_; ++level) {
    if (digit(a, level) != digit(b, level)) {
      if (found >= 0) {
        return -1;
      }
      found = level;
    }
  }
  return found;
}

AlgorithmParameters square_groups(int ranks) {
  int best = 1;
  for (int size = 1; size <= ranks / size; ++size) {
    best = ranks % size == 0 ? size : best;
  }
  return {.local = {best}};
}

bool groups_divide(Shape shape) {
  long product = 1;
  for (const int size : shape.parameters.local) {
    product *= size > 0 ? size : 1;
    if (product > shape.ranks) {
      return false;
    }
  }
  return shape.ranks % product == 0;
}

int level_steps(int size) {
  return is_power_of_two(size) ? floor_log2(size) : size - 1;
}

LevelSend reduce_scatter_send(int size, int digit, int step) {
  if (!is_power_of_two(size)) {
    // Digit d starts with slot d-1, so that it ends with slot d.
    return {.to = wrap(digit + 1, size), .first = wrap(digit - 1 - step, size)};
  }
  const int half = size >> (step + 1);
  const int partner = digit ^ half;
  return {.to = partner, .first = partner & ~(half - 1), .count = half};
}

LevelSend all_gather_send(int size, int digit, int step) {
  if (!is_power_of_two(size)) {
    return {.to = wrap(digit + 1, size), .first = wrap(digit - step, size)};
  }
  const int held = 1 << step;
  return {.to = digit ^ held, .first = digit & ~(held - 1), .count = held};
}

bool is_level_edge(const Hierarchy& hierarchy, int from, int to) {
  const int level = hierarchy.meet(from, to);
  if (level < 0) {
    return false;
  }
  const int size = hierarchy.size(level);
  const int a = hierarchy.digit(from, level);
  const int b = hierarchy.digit(to, level);
  return is_power_of_two(size) ? is_power_of_two(a ^ b) : b == wrap(a + 1, size);
}

int exchange_steps(Shape shape) {
  const Hierarchy hierarchy(shape);
  int steps = 0;
  for (int level = 0; level < hierarchy.levels(); ++level) {
    steps += level_steps(hierarchy.size(level));
  }
  return steps;
}

void reduce_scatter_range(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                          int chunks, std::source_location where) {
  exchange_range(schedule, hierarchy, level, chunks, Combine::reduce, reduce_scatter_send, where);
}

void all_gather_range(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level, int chunks,
                      std::source_location where) {
  exchange_range(schedule, hierarchy, level, chunks, Combine::replace, all_gather_send, where);
}

void reduce_scatter_parts(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                          std::source_location where) {
  exchange_parts(schedule, hierarchy, level, Combine::reduce, reduce_scatter_send, where);
}

void all_gather_parts(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level,
                      std::source_location where) {
  exchange_parts(schedule, hierarchy, level, Combine::replace, all_gather_send, where);
}

CompactSchedule compact_all_gather(Shape shape) {
  const Hierarchy hierarchy(shape);
  CompactSchedule schedule{
      .collective = Collective::all_gather, .ranks = shape.ranks, .chunks = shape.ranks};
  for (int level = hierarchy.levels() - 1; level >= 0; --level) {
    add_phases(schedule, hierarchy, level, "all_gather", false, all_gather_send);
  }
  return schedule;
}

CompactSchedule compact_reduce_scatter(Shape shape) {
  const Hierarchy hierarchy(shape);
  CompactSchedule schedule{
      .collective = Collective::reduce_scatter, .ranks = shape.ranks, .chunks = shape.ranks};
  for (int level = 0; level < hierarchy.levels(); ++level) {
    add_phases(schedule, hierarchy, level, "reduce_scatter", true, reduce_scatter_send);
  }
  return schedule;
}

}  // namespace unisono::algorithms
