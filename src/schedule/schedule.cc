#include "schedule/schedule.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace unisono {
namespace {

// Returns the path below the source tree, so that a schedule does not depend on the place where it
// was built.
std::string tree_path(std::string_view path) {
  constexpr std::string_view kRoot = "/src/";
  const std::size_t at = path.rfind(kRoot);
  return std::string(at == std::string_view::npos ? path : path.substr(at + 1));
}

Buffer explicit_buffer(MoveSpec::Place place) {
  switch (place) {
    case MoveSpec::Place::input:
      return Buffer::input;
    case MoveSpec::Place::scratch:
      return Buffer::scratch;
    case MoveSpec::Place::automatic:
    case MoveSpec::Place::output:
      break;
  }
  return Buffer::output;
}

// Returns the number of chunks per rank, if the chunks are grouped by rank.
int group_size(const Schedule& schedule) {
  return std::max(1, schedule.chunks / schedule.ranks);
}

int pair_size(const Schedule& schedule) {
  return std::max(1, schedule.chunks / (schedule.ranks * schedule.ranks));
}

// `of_pair` is the rank that holds a chunk that belongs to a pair of ranks.
RankRange holders(const Schedule& schedule, Holding holding, int chunk, int of_pair) {
  switch (holding) {
    case Holding::whole_at_root:
      return {.first = schedule.root, .count = 1};
    case Holding::part:
      return {.first = chunk / group_size(schedule), .count = 1};
    case Holding::pairs:
      return {.first = of_pair, .count = 1};
    case Holding::whole:
    case Holding::nothing:
      break;
  }
  return {.first = 0, .count = schedule.ranks};
}

}  // namespace

RankRange input_ranks(const Schedule& schedule, int chunk) {
  return holders(schedule, traits_of(schedule.collective).input, chunk,
                 chunk / pair_size(schedule) / schedule.ranks);
}

RankRange output_ranks(const Schedule& schedule, int chunk) {
  if (traits_of(schedule.collective).terms == Terms::before_own) {  // rank 0 has no terms
    return {.first = 1, .count = schedule.ranks - 1};
  }
  return holders(schedule, traits_of(schedule.collective).output, chunk,
                 chunk / pair_size(schedule) % schedule.ranks);
}

bool has_input(const Schedule& schedule, int rank, int chunk) {
  return input_ranks(schedule, chunk).has(rank);
}

bool needs_output(const Schedule& schedule, int rank, int chunk) {
  return output_ranks(schedule, chunk).has(rank);
}

std::int64_t length_of(const Schedule& schedule, int chunk) {
  if (schedule.counts.empty()) {
    return 1;
  }
  const int pieces = pair_size(schedule);
  const int block = chunk / pieces;
  const std::int64_t count = schedule.counts.sent(block / schedule.ranks, block % schedule.ranks);
  const auto begin = [&](std::int64_t piece) {  // without overflow
    return count / pieces * piece + count % pieces * piece / pieces;
  };
  return begin(chunk % pieces + 1) - begin(chunk % pieces);
}

std::int64_t length_of(const Schedule& schedule, const Move& move) {
  if (schedule.counts.empty()) {
    return move.chunks;
  }
  std::int64_t length = 0;
  for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
    length += length_of(schedule, chunk);
  }
  return length;
}

Collective called_form(const Schedule& schedule) {
  return schedule.counts.empty() ? schedule.collective : Collective::all_to_all_v;
}

ScheduleBuilder::ScheduleBuilder(Collective collective, Shape shape, std::source_location where) {
  schedule_.collective = collective;
  schedule_.ranks = shape.ranks;
  schedule_.chunks = shape.chunks;
  schedule_.root = shape.root;
  schedule_.file = tree_path(where.file_name());
}

void ScheduleBuilder::phase(std::string name) {
  schedule_.phases.push_back({.name = std::move(name), .first_step = step_ + 1});
}

void ScheduleBuilder::step() {
  ++step_;
}

std::size_t ScheduleBuilder::cell(int rank, int chunk) const {
  return static_cast<std::size_t>(rank) * static_cast<std::size_t>(schedule_.chunks) +
         static_cast<std::size_t>(chunk);
}

Buffer ScheduleBuilder::resolve_source(const MoveSpec& spec, int chunk) const {
  if (spec.source != MoveSpec::Place::automatic) {
    return explicit_buffer(spec.source);
  }
  if (needs_output(schedule_, spec.from, chunk)) {
    return Buffer::output;
  }
  const auto written = scratch_written_.find(cell(spec.from, chunk));
  return written != scratch_written_.end() && written->second < step_ ? Buffer::scratch
                                                                      : Buffer::input;
}

Buffer ScheduleBuilder::resolve_target(const MoveSpec& spec, int chunk) const {
  if (spec.target != MoveSpec::Place::automatic) {
    return explicit_buffer(spec.target);
  }
  return needs_output(schedule_, spec.to, chunk) ? Buffer::output : Buffer::scratch;
}

bool ScheduleBuilder::is_output_whole(int rank, MoveSpec::Place place) const {
  if (place != MoveSpec::Place::automatic) {
    return place != MoveSpec::Place::scratch;
  }
  const Holding output = traits_of(schedule_.collective).output;
  return (output == Holding::whole && needs_output(schedule_, rank, 0)) ||
         (output == Holding::whole_at_root && rank == schedule_.root);
}

void ScheduleBuilder::move_of_line(const MoveSpec& spec, std::uint32_t line) {
  step_ = std::max(step_, 0);
  int chunk = spec.chunk;
  const int end = spec.chunk + spec.chunks;
  // A shortcut: without it, long ranges of many ranks would be processed chunk by chunk.
  const bool one_place =
      is_output_whole(spec.from, spec.source) && is_output_whole(spec.to, spec.target);
  while (chunk < end) {
    const Buffer source = resolve_source(spec, chunk);
    const Buffer target = resolve_target(spec, chunk);
    int next = one_place ? end : chunk + 1;
    while (next < end && resolve_source(spec, next) == source &&
           resolve_target(spec, next) == target) {
      ++next;
    }
    if (target == Buffer::scratch) {
      for (int written = chunk; written < next; ++written) {
        scratch_written_.try_emplace(cell(spec.to, written), step_);
      }
    }
    schedule_.moves.push_back({.step = step_,
                               .from = spec.from,
                               .to = spec.to,
                               .chunk = chunk,
                               .chunks = next - chunk,
                               .source = source,
                               .target = target,
                               .combine = spec.combine,
                               .line = line});
    chunk = next;
  }
}

Schedule ScheduleBuilder::build() && {
  schedule_.steps = schedule_.moves.empty() ? 0 : schedule_.moves.back().step + 1;
  std::vector<Phase> phases;
  for (std::size_t i = 0; i < schedule_.phases.size(); ++i) {
    const int first = schedule_.phases[i].first_step;
    const bool last = i + 1 == schedule_.phases.size();
    const int end = last ? schedule_.steps : schedule_.phases[i + 1].first_step;
    if (first < std::min(end, schedule_.steps)) {
      phases.push_back(std::move(schedule_.phases[i]));
    }
  }
  schedule_.phases = std::move(phases);
  return std::move(schedule_);
}

}  // namespace unisono
