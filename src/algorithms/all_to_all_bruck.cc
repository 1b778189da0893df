// Bruck all_to_all: a part that has d places to go hops 2^k places for every bit k of d.
//
//   steps    ceil(log2(n)), the lower bound
//   sent     the set bits of 1, 2, ..., n-1: about n/2 * log2(n) chunks per rank
//   cost     ceil(log2(n))*alpha + log2(n)/2 * S*beta: for short parts
//   scratch  the parts that pass through
//   order    nothing is summed
//   limits   not in place: a part arrives before the one whose place it takes has left; not the
//            v-form: a rank would pass on parts whose sizes only their two ends know
//   source   Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997
#include <bit>

#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_to_all, {.ranks = n, .chunks = n * n}};
  for (int hop = 1; hop < n; hop *= 2) {
    schedule.step();
    for (int distance = hop; distance < n; ++distance) {
      if ((distance & hop) == 0) {
        continue;
      }
      // The lower bits of the way are behind it.
      for (int source = 0; source < n; ++source) {
        const int rank = wrap(source + (distance & (hop - 1)), n);
        schedule.move({.from = rank,
                       .to = wrap(rank + hop, n),
                       .chunk = source * n + wrap(source + distance, n)});
      }
    }
  }
  return std::move(schedule).build();
}

constexpr int chunks_sent(int n) {
  int sent = 0;
  for (int distance = 1; distance < n; ++distance) {
    sent += std::popcount(static_cast<unsigned>(distance));
  }
  return sent;
}

}  // namespace

extern constinit const Algorithm all_to_all_bruck{
    .name = "bruck",
    .collective = Collective::all_to_all,
    .summary = "parts hop by the bits of their distance; fewest steps, for short parts",
    .source = "Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997",
    .build = build,
    .steps = ceil_log2,
    .chunks_sent = chunks_sent,
    .edge = [](Shape shape, int from,
               int to) { return is_power_of_two(wrap(to - from, shape.ranks)); },
    .limits = "not in place",
    .in_place = false};

}  // namespace unisono::algorithms
