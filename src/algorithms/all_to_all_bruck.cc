// Bruck all_to_all with radix k: a part that must go d places ahead hops j*k^i places for every
// digit j of d in radix k.
//
//   steps    ceil(log_k(n)); for k = 2 the lower bound
//   sent     one chunk per non-zero digit of 1, 2, ..., n-1: about n * (k-1)/k * log_k(n) chunks
//   cost     M*alpha + (sent)/n * S*beta, where M counts the integers from 1 to n-1 with exactly
//            one non-zero digit. k = 2 has the fewest steps and most bytes; k = n, one hop per part
//   scratch  the parts that a rank forwards
//   order    nothing is summed
//   limits   not in place, because a part may arrive before the part that it replaces has left. No
//            v-form, because a rank that forwards a part does not know the part's size
//   source   Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997
#include "algorithms/knomial.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_to_all_bruck(Shape shape) {
  const int n = shape.ranks;
  const int radix = shape.parameters.radix;
  ScheduleBuilder schedule{Collective::all_to_all, {.ranks = n, .chunks = n * n}};
  for (const int weight : weights(n, radix)) {
    schedule.step();
    for (int digit = 1; digit <= last_digit(n, radix, weight); ++digit) {
      const int hop = digit * weight;
      for (int distance = hop; distance < n; ++distance) {
        if (distance / weight % radix != digit) {
          continue;
        }
        // The part has already hopped for the lower digits.
        for (int source = 0; source < n; ++source) {
          const int rank = wrap(source + distance % weight, n);
          schedule.move({.from = rank,
                         .to = wrap(rank + hop, n),
                         .chunk = source * n + wrap(source + distance, n)});
        }
      }
    }
  }
  return std::move(schedule).build();
}

// Among 0, 1, ..., n-1, the digit of a weight is zero in the first `weight` of every weight*k
// numbers.
int chunks_sent_all_to_all_bruck(Shape shape) {
  const int n = shape.ranks;
  int sent = 0;
  for (const int weight : weights(n, shape.parameters.radix)) {
    const long period = static_cast<long>(weight) * shape.parameters.radix;
    const long zeros = n / period * weight + std::min<long>(n % period, weight);
    sent += static_cast<int>(n - zeros);
  }
  return sent;
}

}  // namespace

extern constinit const Algorithm all_to_all_bruck{
    .name = "bruck",
    .collective = Collective::all_to_all,
    .summary = "parts hop by the digits of their distance; fewest steps, for short parts",
    .source = "Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997",
    .build = build_all_to_all_bruck,
    .steps = [](Shape shape) { return digits(shape.ranks, shape.parameters.radix); },
    .chunks_sent = chunks_sent_all_to_all_bruck,
    .cost =
        [](Shape shape, const CostTerms& t) {
          return single_digits(shape.ranks, shape.parameters.radix) * t.alpha +
                 chunks_sent_all_to_all_bruck(shape) * t.beta / shape.ranks;
        },
    .edge =
        [](Shape shape, int from, int to) {
          return from != to &&
                 knomial_parent(wrap(to - from, shape.ranks), shape.parameters.radix) == 0;
        },
    .limits = "not in place",
    .in_place = false,
    .defaults = [](int) { return AlgorithmParameters{.radix = 2}; }};

}  // namespace unisono::algorithms
