// Hierarchical all_to_all: a part goes digit by digit to its destination, inside groups first, so
// that only few and long messages cross groups.
//
//   steps    each level of L ranks adds L-1 if L is even, otherwise L
//   sent     each level adds (L-1)/L * n chunks
//   cost     each level adds (L-1)*alpha + (L-1)/L * S*beta if L is even
//   scratch  the parts that a rank forwards
//   order    nothing is summed
//   limits   n a multiple of the groups; in place. No v-form, because a rank that forwards a part
//            does not know the part's size
//   source   Traeff and Rougier, EuroMPI/ASIA 2014
#include "algorithms/hierarchy.h"
#include "algorithms/pairing.h"

namespace unisono::algorithms {
namespace {

// Sends all parts that `rank` has at this level for ranks with the digit `digit`. They come from
// ranks that differ from `rank` in lower digits only, and go to ranks that differ in higher digits
// only.
void send(ScheduleBuilder& schedule, const Hierarchy& hierarchy, int level, int rank, int digit) {
  const int n = hierarchy.ranks();
  const int stride = hierarchy.stride(level);
  const int to = hierarchy.with_digit(rank, level, digit);
  for (int source = rank / stride * stride; source < rank / stride * stride + stride; ++source) {
    for (int target = to % (stride * hierarchy.size(level)); target < n;
         target += stride * hierarchy.size(level)) {
      schedule.move({.from = rank, .to = to, .chunk = source * n + target});
    }
  }
}

Schedule build_all_to_all_hierarchical(Shape shape) {
  const Hierarchy hierarchy(shape);
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_to_all, {.ranks = n, .chunks = n * n}};
  for (int level = 0; level < hierarchy.levels(); ++level) {
    schedule.phase("all_to_all " + std::to_string(level));
    const int size = hierarchy.size(level);
    for (int round = 0; round < pairing_rounds(size); ++round) {
      schedule.step();
      for (int rank = 0; rank < n; ++rank) {
        const int digit = partner(size, round, hierarchy.digit(rank, level));
        if (digit >= 0) {
          send(schedule, hierarchy, level, rank, digit);
        }
      }
    }
  }
  return std::move(schedule).build();
}

std::vector<CompactMessage> messages_of(const Hierarchy& hierarchy, int level, int round) {
  const int n = hierarchy.ranks();
  const int size = hierarchy.size(level);
  std::vector<CompactMessage> messages;
  messages.reserve(static_cast<std::size_t>(n));
  for (int rank = 0; rank < n; ++rank) {
    const int digit = partner(size, round, hierarchy.digit(rank, level));
    if (digit >= 0) {
      messages.push_back(
          {.from = rank, .to = hierarchy.with_digit(rank, level, digit), .chunks = n / size});
    }
  }
  return messages;
}

// A rank's sends at one level depend on its receives at lower levels, but not on those at the same
// level, so each level is one phase.
CompactSchedule compact_all_to_all_hierarchical(Shape shape) {
  const Hierarchy hierarchy(shape);
  const int n = shape.ranks;
  CompactSchedule schedule{
      .collective = Collective::all_to_all, .ranks = n, .chunks = static_cast<std::int64_t>(n) * n};
  for (int level = 0; level < hierarchy.levels(); ++level) {
    const int size = hierarchy.size(level);
    CompactPhase phase{.name = "all_to_all " + std::to_string(level)};
    phase.parts = {
        .count = pairing_rounds(size),
        .messages = n - size % 2 * (n / size),
        .make = [hierarchy, level](int round) { return messages_of(hierarchy, level, round); }};
    schedule.phases.push_back(std::move(phase));
  }
  return schedule;
}

template <typename Term>
int sum_over_levels(Shape shape, const Term& term) {
  const Hierarchy hierarchy(shape);
  int sum = 0;
  for (int level = 0; level < hierarchy.levels(); ++level) {
    sum += term(hierarchy.size(level));
  }
  return sum;
}

int steps_all_to_all_hierarchical(Shape shape) {
  return sum_over_levels(shape, pairing_rounds);
}

int chunks_sent_all_to_all_hierarchical(Shape shape) {
  return sum_over_levels(shape, [&](int size) { return shape.ranks / size * (size - 1); });
}

}  // namespace

extern constinit const Algorithm all_to_all_hierarchical{
    .name = "hierarchical",
    .collective = Collective::all_to_all,
    .summary = "inside groups first, then between them; few messages between groups",
    .source = "Traeff and Rougier, EuroMPI/ASIA 2014",
    .build = build_all_to_all_hierarchical,
    .steps = steps_all_to_all_hierarchical,
    .chunks_sent = chunks_sent_all_to_all_hierarchical,
    .cost =
        [](Shape shape, const CostTerms& t) {
          const Hierarchy hierarchy(shape);
          double time = 0;
          for (int level = 0; level < hierarchy.levels(); ++level) {
            const int size = hierarchy.size(level);
            time += pairing_rounds(size) * (t.alpha + t.beta / size);
          }
          return time;
        },
    .edge = [](Shape shape, int from, int to) { return Hierarchy(shape).meet(from, to) >= 0; },
    .supports = groups_divide,
    .limits = kGroupLimits,
    .defaults = square_groups,
    .compact = compact_all_to_all_hierarchical};

}  // namespace unisono::algorithms
