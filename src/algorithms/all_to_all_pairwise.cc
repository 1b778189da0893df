// Pairwise all_to_all: in every step the ranks form pairs, which exchange their parts.
//
//   steps    n-1 for even n; n for odd n, where one rank rests in each step
//   sent     n-1 chunks per rank = (n-1)/n * S bytes, the lower bound
//   cost     (n-1)*alpha + (n-1)/n * S*beta for even n; one round more for odd n
//   scratch  none
//   order    nothing is summed
//   limits   none; works in place, because each part is sent in the step that overwrites it
//   source   Kirkman, Cambridge and Dublin Math. J. 2, 1847 (the pairing, a round robin tournament)
#include "algorithms/pairing.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_to_all_pairwise(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_to_all, {.ranks = n, .chunks = n * n}};
  for (int round = 0; round < pairing_rounds(n); ++round) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      const int to = partner(n, round, rank);
      if (to >= 0) {
        schedule.move({.from = rank, .to = to, .chunk = rank * n + to});
      }
    }
  }
  return std::move(schedule).build();
}

std::vector<CompactMessage> messages_of(int n, int round) {
  std::vector<CompactMessage> messages;
  messages.reserve(static_cast<std::size_t>(n));
  for (int rank = 0; rank < n; ++rank) {
    const int to = partner(n, round, rank);
    if (to >= 0) {
      messages.push_back({.from = rank, .to = to, .chunks = 1});
    }
  }
  return messages;
}

// A rank's sends in one step do not depend on other steps, so all steps are one phase.
CompactSchedule compact_all_to_all_pairwise(Shape shape) {
  const int n = shape.ranks;
  CompactPhase phase{.name = "all_to_all", .waits = false};
  phase.parts = {.count = pairing_rounds(n), .messages = n - n % 2, .make = [n](int round) {
                   return messages_of(n, round);
                 }};
  return {.collective = Collective::all_to_all,
          .ranks = n,
          .chunks = static_cast<std::int64_t>(n) * n,
          .phases = {std::move(phase)}};
}

}  // namespace

extern constinit const Algorithm all_to_all_pairwise{
    .name = "pairwise",
    .collective = Collective::all_to_all,
    .summary = "pairs of ranks exchange parts, a different pairing in each step",
    .source = "Kirkman, Cambridge and Dublin Math. J. 2, 1847 (round robin tournament)",
    .build = build_all_to_all_pairwise,
    .steps = [](Shape shape) { return pairing_rounds(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return pairing_rounds(shape.ranks) * (t.alpha + t.beta / shape.ranks);
        },
    .edge = [](Shape, int from, int to) { return from != to; },
    .allows_v = true,
    .compact = compact_all_to_all_pairwise};

}  // namespace unisono::algorithms
