// Recursive doubling scan: ranks at distance 1, 2, 4, ... pass their sums upwards.
//
//   steps    ceil(log2(n)), the fewest
//   sent     ceil(log2(n)) chunks = ceil(log2(n)) * S bytes by rank 0
//   cost     ceil(log2(n)) * (alpha + S*beta + S*gamma)
//   scratch  none
//   order    a tree: at distance d, rank r adds the sum of the d ranks up to r-d (first operand)
//            and the sum of the d ranks up to r (second operand)
//   limits   none; in place
//   source   Hillis and Steele, CACM 29(12), 1986
#include "algorithms/scans.h"

namespace unisono::algorithms {
namespace {

Schedule build_scan_recursive_doubling(Shape shape) {
  ScheduleBuilder schedule{Collective::scan, {.ranks = shape.ranks, .chunks = 1}};
  scan_by_doubling(schedule, 0, shape.ranks);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm scan_recursive_doubling{
    .name = "recursive_doubling",
    .collective = Collective::scan,
    .summary = "sums go up to ranks at doubling distances; fewest steps",
    .source = "Hillis and Steele, CACM 29(12), 1986",
    .build = build_scan_recursive_doubling,
    .steps = [](Shape shape) { return ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return ceil_log2(shape.ranks); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          return ceil_log2(shape.ranks) * (t.alpha + t.beta + t.gamma);
        },
    .edge = [](Shape, int from, int to) { return is_power_of_two(to - from); }};

}  // namespace unisono::algorithms
