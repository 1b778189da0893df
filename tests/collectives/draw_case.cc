#include "draw_case.h"

#include "algorithms/catalog.h"

namespace unisono::testing {
namespace {

// Returns the bytes of the whole vector: mostly few, rarely a MiB.
std::size_t draw_bytes(Draw& draw) {
  const std::size_t largest = draw.one_in(40) ? 20 : draw.one_in(6) ? 15 : 10;
  const std::size_t bits = draw.below(largest + 1);
  return draw.below((std::size_t{1} << bits) + 1);
}

}  // namespace

std::vector<std::string> algorithms_for(const Case& one) {
  std::vector<std::string> names;
  for (const Algorithm* algorithm : catalog()) {
    if (find_algorithm(one.collective, algorithm->name) == algorithm &&
        can_serve(*algorithm, {.ranks = one.ranks})) {
      names.emplace_back(algorithm->name);
    }
  }
  return names;
}

void draw_own_matter(Draw& draw, Case& one) {
  one.in_place = draw.one_in(2);
  one.gaps = is_v(one.collective) && draw.one_in(2);
  one.memory = draw.one_in(12) ? static_cast<Memory>(1 + draw.below(2)) : Memory::plain;
  one.form = static_cast<Form>(draw.one_in(3) ? draw.below(4) : 0);
  one.skew = draw.one_in(5) ? draw.below(9) : 0;
}

Case draw_case(Draw& draw, int ranks) {
  Case one;
  one.ranks = ranks;
  one.collective = static_cast<Collective>(draw.below(kCollectiveCount));
  std::vector<std::string> algorithms = algorithms_for(one);
  algorithms.emplace_back();  // the library's choice
  one.algorithm = draw.of(algorithms);
  do {
    one.dtype = static_cast<Dtype>(draw.below(kDtypeCount));
    one.op = static_cast<ReduceOp>(draw.below(kReduceOpCount));
  } while (has_op(one.collective) && !defined(one.collective, one.dtype, one.op));
  one.op = has_op(one.collective) ? one.op : ReduceOp::sum;
  one.root = has_root(one.collective) ? draw.rank_below(ranks) : 0;
  one.count = draw_bytes(draw) / size_of(one.dtype) /
              (is_vector(one.collective) ? 1 : static_cast<std::size_t>(ranks));
  draw_own_matter(draw, one);
  one.seed = draw.next() % 1'000'000;
  return one;
}

}  // namespace unisono::testing
