// Recursive multiplying all_reduce with radix k: in a round, k ranks exchange their sums.
//
//   steps    k for each of the m rounds of k ranks, and q for the round of q < k ranks, if q*k^m
//            ranks take part. One more for an odd number of rounds; two more if other ranks exist
//   sent     m*(k-1) + q-1 chunks; 1 more for a rank that represents a pair
//   cost     m*R(k) + R(q), where R(k) = (k-1)*(alpha + S*beta + S*gamma) + (k-2)*(alpha + S*beta),
//            because the ranks of a round receive in the same order. If ranks hand in their input,
//            alpha + S*beta + S*gamma more; if a rank that hands back a result ends last, another
//            alpha + S*beta
//   scratch  one chunk: the sums of every other round
//   order    nested sums of k in the order of the digits, neighbours first. All ranks add the same
//            sums in the same order, so all get the same bits
//   limits   none (the ranks beyond q*k^m hand their input to a neighbour); in place
//   source   Ruefenacht, Bull and Booth, Parallel Computing 69, 2017
#include "algorithms/rounds.h"

namespace unisono::algorithms {
namespace {

// A round makes its sums in the buffer that the previous round did not use, because the previous
// sums are still being sent.
void exchange(ScheduleBuilder& schedule, const Rounds& rounds, std::size_t index) {
  const Round& round = rounds.all()[index];
  const Fold& fold = rounds.fold();
  const Place before = index % 2 == 0 ? Place::output : Place::scratch;
  const Place after = index % 2 == 0 ? Place::scratch : Place::output;
  for (int digit = 0; digit < round.size; ++digit) {
    schedule.step();
    for (int position = 0; position < fold.power; ++position) {
      const int from = round.with_digit(position, digit);
      // Scratch that nobody has written reads as this rank's input, so no copy is needed.
      if (from == position && digit == 0 && index == 0 && fold.rank(position) >= 2 * fold.rest) {
        continue;
      }
      schedule.move({.from = fold.rank(from),
                     .to = fold.rank(position),
                     .combine = digit == 0 ? Combine::replace : Combine::reduce,
                     .source = before,
                     .target = after});
    }
  }
}

Schedule build_all_reduce_recursive_multiplying(Shape shape) {
  const Rounds rounds(shape.ranks, shape.parameters.radix);
  const Fold& fold = rounds.fold();
  ScheduleBuilder schedule{Collective::all_reduce, {.ranks = shape.ranks, .chunks = 1}};

  schedule.phase("fold");
  if (fold.rest > 0) {
    schedule.step();
  }
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair, .to = 2 * pair + 1, .combine = Combine::reduce});
  }
  schedule.phase("exchange");
  for (std::size_t round = 0; round < rounds.all().size(); ++round) {
    exchange(schedule, rounds, round);
  }
  if (rounds.all().size() % 2 == 1) {
    schedule.step();
    for (int position = 0; position < fold.power; ++position) {
      const int rank = fold.rank(position);
      schedule.move({.from = rank, .to = rank, .source = Place::scratch, .target = Place::output});
    }
  }
  schedule.phase("unfold");
  schedule.step();
  for (int pair = 0; pair < fold.rest; ++pair) {
    schedule.move({.from = 2 * pair + 1, .to = 2 * pair});
  }
  return std::move(schedule).build();
}

int steps_all_reduce_recursive_multiplying(Shape shape) {
  const Rounds rounds(shape.ranks, shape.parameters.radix);
  int steps = rounds.fold().steps() + static_cast<int>(rounds.all().size() % 2);
  for (const Round& round : rounds.all()) {
    steps += round.size;
  }
  return steps;
}

int chunks_sent_all_reduce_recursive_multiplying(Shape shape) {
  const Rounds rounds(shape.ranks, shape.parameters.radix);
  int sent = rounds.fold().rest > 0 ? 1 : 0;
  for (const Round& round : rounds.all()) {
    sent += round.size - 1;
  }
  return sent;
}

// In a round of k ranks, the digits k-2 and k-1 end last, and each lower digit ends one message
// earlier. So the first position that is last in every round hands back after the others have
// ended; the positions before it hand back meanwhile.
double cost(Shape shape, const CostTerms& t) {
  const Rounds rounds(shape.ranks, shape.parameters.radix);
  const double send = t.alpha + t.beta;
  double time = 0;
  int last = 0;
  for (const Round& round : rounds.all()) {
    time += (round.size - 1) * (send + t.gamma) + (round.size - 2) * send;
    last += (round.size - 2) * round.weight;
  }
  const int pairs = rounds.fold().rest;
  return time + (pairs > 0 ? send + t.gamma : 0) + (pairs > last ? send : 0);
}

}  // namespace

extern constinit const Algorithm all_reduce_recursive_multiplying{
    .name = "recursive_multiplying",
    .collective = Collective::all_reduce,
    .summary = "k ranks exchange sums in a round, at growing distances; fewest rounds",
    .source = "Ruefenacht, Bull and Booth, Parallel Computing 69, 2017",
    .build = build_all_reduce_recursive_multiplying,
    .steps = steps_all_reduce_recursive_multiplying,
    .chunks_sent = chunks_sent_all_reduce_recursive_multiplying,
    .cost = cost,
    .edge = Rounds::edge,
    .total_sent =
        [](Shape shape) {
          const Fold fold = Rounds(shape.ranks, shape.parameters.radix).fold();
          const int each =
              chunks_sent_all_reduce_recursive_multiplying(shape) - (fold.rest > 0 ? 1 : 0);
          return fold.power * each + 2 * fold.rest;
        },
    .defaults = [](int) { return AlgorithmParameters{.radix = 4}; }};

}  // namespace unisono::algorithms
