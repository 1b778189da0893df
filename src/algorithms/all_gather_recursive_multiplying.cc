// Recursive multiplying all_gather with radix k: in a round, k ranks exchange all their data.
//
//   steps    m rounds of k ranks and one round of q < k ranks, for the q*k^m ranks that take part;
//            2 more if other ranks exist
//   sent     n-1 chunks if all ranks take part, the lower bound; up to twice as many for a rank
//            that represents a pair
//   cost     (m*(k-1) + q-1)*alpha + (n-1)/n * S*beta if all ranks take part
//   scratch  none
//   order    nothing is summed
//   limits   none (the ranks beyond q*k^m hand their parts to a neighbour); in place
//   source   Ruefenacht, Bull and Booth, Parallel Computing 69, 2017 (for all_reduce)
#include "algorithms/rounds.h"

namespace unisono::algorithms {
namespace {

Schedule build_all_gather_recursive_multiplying(Shape shape) {
  const int n = shape.ranks;
  const Rounds rounds(n, shape.parameters.radix);
  const Fold& fold = rounds.fold();
  ScheduleBuilder schedule{Collective::all_gather, {.ranks = n, .chunks = n}};

  schedule.phase("fold");
  if (fold.rest > 0) {
    schedule.step();
  }
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair, .to = 2 * pair + 1, .chunk = 2 * pair});
  }
  schedule.phase("exchange");
  for (const Round& round : rounds.all()) {
    schedule.step();
    for (int apart = 1; apart < round.size; ++apart) {
      for (int position = 0; position < fold.power; ++position) {
        // Before the round, a position has the block of all positions that differ only in lower
        // digits.
        const int first = position - position % round.weight;
        const int digit = (round.digit(position) + apart) % round.size;
        schedule.move({.from = fold.rank(position),
                       .to = fold.rank(round.with_digit(position, digit)),
                       .chunk = fold.first_rank(first),
                       .chunks = fold.first_rank(first + round.weight) - fold.first_rank(first)});
      }
    }
  }
  schedule.phase("unfold");
  schedule.step();
  for (int pair = 0; pair < fold.rest; ++pair) {
    const int even = 2 * pair;
    schedule.move({.from = even + 1, .to = even, .chunk = 0, .chunks = even});
    schedule.move({.from = even + 1, .to = even, .chunk = even + 1, .chunks = n - even - 1});
  }
  return std::move(schedule).build();
}

// The rank at position 0 sends most, because the blocks that begin there contain the most pairs.
int chunks_sent_all_gather_recursive_multiplying(Shape shape) {
  const Rounds rounds(shape.ranks, shape.parameters.radix);
  int sent = rounds.fold().rest > 0 ? shape.ranks - 1 : 0;
  for (const Round& round : rounds.all()) {
    sent += (round.size - 1) * rounds.fold().first_rank(round.weight);
  }
  return sent;
}

int messages(Shape shape) {
  const Rounds rounds(shape.ranks, shape.parameters.radix);
  int sent = rounds.fold().steps();
  for (const Round& round : rounds.all()) {
    sent += round.size - 1;
  }
  return sent;
}

}  // namespace

extern constinit const Algorithm all_gather_recursive_multiplying{
    .name = "recursive_multiplying",
    .collective = Collective::all_gather,
    .summary = "k ranks exchange all they have in a round, at growing distances",
    .source = "Ruefenacht, Bull and Booth, Parallel Computing 69, 2017",
    .build = build_all_gather_recursive_multiplying,
    .steps =
        [](Shape shape) {
          const Rounds rounds(shape.ranks, shape.parameters.radix);
          return static_cast<int>(rounds.all().size()) + rounds.fold().steps();
        },
    .chunks_sent = chunks_sent_all_gather_recursive_multiplying,
    .cost =
        [](Shape shape, const CostTerms& t) {
          const Rounds rounds(shape.ranks, shape.parameters.radix);
          const int handed_in = rounds.fold().rest > 0 ? 1 : 0;
          return messages(shape) * t.alpha +
                 (chunks_sent_all_gather_recursive_multiplying(shape) + handed_in) * t.beta /
                     shape.ranks;
        },
    .edge = Rounds::edge,
    .allows_v = true,
    .defaults = [](int) { return AlgorithmParameters{.radix = 4}; }};

}  // namespace unisono::algorithms
