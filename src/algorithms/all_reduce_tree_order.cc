// Tree-order all_reduce: reduce_scatter/tree_order, then the same messages in reverse.
//
//   steps    2 ceil(log2(n))
//   sent     2(n-1) chunks per rank = 2(n-1)/n * S bytes, the lower bound, for n a power of two.
//            Otherwise the average is the same, and a rank that adds for others sends up to 2n+3
//            (n <= 64)
//   cost     2 log2(n)*alpha + 2(n-1)/n * S*beta + (n-1)/n * S*gamma for n a power of two.
//            Otherwise more, because the blocks of tree_order.h wait for each other
//   scratch  none
//   order    tree(0, n), see tree_order.h
//   limits   none; in place
//   source   Rabenseifner, ICCS 2004, beginning with the nearest partner
#include "algorithms/tree_order.h"

namespace unisono::algorithms {
namespace {

// Reverses the bits of a chunk's number, so that the chunks of a message are neighbours. Applied
// twice, this gives the number itself.
int name_of(int chunk, int ranks) {
  if (!is_power_of_two(ranks)) {
    return chunk;
  }
  int result = 0;
  for (int bit = 1; bit < ranks; bit *= 2) {
    result = 2 * result + chunk / bit % 2;
  }
  return result;
}

// In the reversed messages, a rank sends the chunks that it has received.
int most_received(int ranks) {
  std::vector<int> received(static_cast<std::size_t>(ranks));
  for (const TreeMessage& message : tree_messages(ranks)) {
    received[static_cast<std::size_t>(message.to)] += message.count();
  }
  return *std::max_element(received.begin(), received.end());
}

Schedule build_all_reduce_tree_order(Shape shape) {
  const int n = shape.ranks;
  ScheduleBuilder schedule{Collective::all_reduce, {.ranks = n, .chunks = n}};
  const std::vector<TreeMessage> messages = tree_messages(n);
  const auto name = [n](int chunk) { return name_of(chunk, n); };
  schedule.phase("reduce_scatter");
  add_tree_messages(schedule, messages, Combine::reduce, name);
  schedule.phase("all_gather");
  add_tree_messages(schedule, backwards(messages, n), Combine::replace, name);
  return std::move(schedule).build();
}

}  // namespace

extern constinit const Algorithm all_reduce_tree_order{
    .name = "tree_order",
    .collective = Collective::all_reduce,
    .summary = "sums over a fixed tree; each input may be a sum over several leaves",
    .source = "Rabenseifner, ICCS 2004",
    .build = build_all_reduce_tree_order,
    .steps = [](Shape shape) { return 2 * ceil_log2(shape.ranks); },
    .chunks_sent = [](Shape shape) { return shape.ranks - 1 + most_received(shape.ranks); },
    .cost =
        [](Shape shape, const CostTerms& t) {
          if (is_power_of_two(shape.ranks)) {
            return 2 * ceil_log2(shape.ranks) * t.alpha +
                   (1 - 1.0 / shape.ranks) * (2 * t.beta + t.gamma);
          }
          TreeOrderTime time(shape.ranks, t);
          const std::vector<TreeMessage> messages = tree_messages(shape.ranks);
          time.play(messages, Combine::reduce);
          time.play(backwards(messages, shape.ranks), Combine::replace);
          return time.last();
        },
    .edge =
        [](Shape shape, int from, int to) {
          return is_tree_order_edge(shape.ranks, from, to) ||
                 is_tree_order_edge(shape.ranks, to, from);
        },
    .route =
        [](Shape shape, const Move& move) {
          const bool back = move.combine == Combine::replace;
          for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
            if (!is_tree_order_route(shape.ranks, back ? move.to : move.from,
                                     back ? move.from : move.to, name_of(chunk, shape.ranks))) {
              return false;
            }
          }
          return true;
        },
    .total_sent = [](Shape shape) { return 2 * shape.ranks * (shape.ranks - 1); }};

}  // namespace unisono::algorithms
