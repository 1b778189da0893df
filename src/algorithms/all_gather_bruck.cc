// Bruck all_gather with radix k: in a round, a rank that has d parts sends all of them to the ranks
// d, 2d, ..., (k-1)d places back.
//
//   steps    ceil(log_k(n)); for k = 2 the lower bound for any n
//   sent     n-1 chunks per rank, the lower bound
//   cost     M*alpha + (n-1)/n * S*beta, where M counts the integers from 1 to n-1 with exactly one
//            non-zero digit in radix k: ceil(log2(n)) for k = 2, at most (k-1) * ceil(log_k(n))
//   scratch  none: data is named by its chunk, so the rotation of the paper is not needed
//   order    nothing is summed
//   limits   none; in place
//   source   Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997
#include "algorithms/knomial.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_gather_bruck(Shape shape) {
  const int n = shape.ranks;
  const int radix = shape.parameters.radix;
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = n, .chunks = n}};
  // Before the step with distance d, rank r has the parts of r, r+1, ..., r+d-1.
  for (const int distance : weights(n, radix)) {
    schedule.step();
    for (int digit = 1; digit <= last_digit(n, radix, distance); ++digit) {
      const int hop = digit * distance;
      for (int rank = 0; rank < n; ++rank) {
        move_wrapped(schedule,
                     {.from = rank,
                      .to = wrap(rank - hop, n),
                      .chunk = rank,
                      .chunks = std::min(distance, n - hop)},
                     n);
      }
    }
  }
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_gather_bruck{
    .name = "bruck",
    .collective = Collective::all_gather,
    .summary = "each rank sends all its parts 1, 2, 4, ... places back; fewest steps for any n",
    .source = "Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997",
    .build = build_all_gather_bruck,
    .steps = [](Shape shape) { return digits(shape.ranks, shape.parameters.radix); },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1; },
    .cost =
        [](Shape shape, const CostTerms& t) {
          const int n = shape.ranks;
          return single_digits(n, shape.parameters.radix) * t.alpha + (n - 1) * t.beta / n;
        },
    .edge =
        [](Shape shape, int from, int to) {
          return from != to &&
                 knomial_parent(wrap(from - to, shape.ranks), shape.parameters.radix) == 0;
        },
    .allows_v = true,
    .defaults = [](int) { return AlgorithmParameters{.radix = 2}; }};

}  // namespace unisono::algorithms
