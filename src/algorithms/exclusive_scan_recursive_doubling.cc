// Recursive doubling exclusive_scan: every rank sends its input to the next rank; then ranks 1 to
// n-1 scan the inputs that they received.
//
//   steps    1 + ceil(log2(n-1)) (n > 1)
//   sent     1 + ceil(log2(n-1)) chunks, of S bytes each, by rank 1
//   cost     alpha + S*beta + ceil(log2(n-1)) * (alpha + S*beta + S*gamma)
//   scratch  none
//   order    the tree of scan's recursive_doubling for rank r-1 of n-1 ranks
//   limits   none; in place
//   source   Hillis and Steele, CACM 29(12), 1986
#include "algorithms/scans.h"

namespace unisono::algorithms {
namespace {

Schedule build_exclusive_scan_recursive_doubling(Shape shape) {
  ScheduleBuilder schedule{Collective::exclusive_scan, {.ranks = shape.ranks, .chunks = 1}};
  schedule.phase("shift");
  schedule.step();
  for (int rank = 0; rank + 1 < shape.ranks; ++rank) {
    schedule.move({.from = rank, .to = rank + 1, .source = Place::input});
  }
  schedule.phase("scan");
  scan_by_doubling(schedule, 1, shape.ranks);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm exclusive_scan_recursive_doubling{
    .name = "recursive_doubling",
    .collective = Collective::exclusive_scan,
    .summary = "inputs move up by one rank, then sums to ranks at doubling distances; few steps",
    .source = "Hillis and Steele, CACM 29(12), 1986",
    .build = build_exclusive_scan_recursive_doubling,
    .steps = [](Shape shape) { return shape.ranks == 1 ? 0 : 1 + ceil_log2(shape.ranks - 1); },
    .chunks_sent =
        [](Shape shape) { return shape.ranks == 1 ? 0 : 1 + ceil_log2(shape.ranks - 1); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return shape.ranks == 1
                     ? 0
                     : t.alpha + t.beta + ceil_log2(shape.ranks - 1) * (t.alpha + t.beta + t.gamma);
        },
    .edge = [](Shape, int from, int to) { return is_power_of_two(to - from); }};

}  // namespace unisono::algorithms
