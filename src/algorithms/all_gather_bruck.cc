// Bruck all_gather: in step k every rank sends all that it has to the rank 2^k places back.
//
//   steps    ceil(log2(n)), the lower bound for any n
//   sent     n-1 chunks per rank, the lower bound
//   cost     ceil(log2(n))*alpha + (n-1)/n * S*beta
//   scratch  none: data is named by its chunk, so the rotation of the paper is not needed
//   order    nothing is summed
//   limits   none; in place
//   source   Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997
#include "algorithms/shapes.h"

namespace unisono::algorithms {
namespace {

Schedule build(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = n, .chunks = n}};
  // Before the step with distance d, rank r has the parts of r, r+1, ..., r+d-1.
  for (int distance = 1; distance < n; distance *= 2) {
    schedule.step();
    for (int rank = 0; rank < n; ++rank) {
      move_wrapped(schedule,
                   {.from = rank,
                    .to = wrap(rank - distance, n),
                    .chunk = rank,
                    .chunks = std::min(distance, n - distance)},
                   n);
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_gather_bruck{
    .name = "bruck",
    .collective = Collective::all_gather,
    .summary = "all that a rank has goes 1, 2, 4, ... places back; fewest steps for any n",
    .source = "Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997",
    .build = build,
    .steps = ceil_log2,
    .chunks_sent = [](int n) { return n - 1; },
    .edge = [](Shape shape, int from,
               int to) { return is_power_of_two(wrap(from - to, shape.ranks)); },
    .allows_v = true};

}  // namespace unisono::algorithms
