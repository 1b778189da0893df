// Draws a chaos run from a seed.
#include <algorithm>

#include "algorithms/catalog.h"
#include "chaos.h"

namespace unisono::testing {
namespace {

using sim::Random;

constexpr int kMostRanks = 9;
constexpr std::size_t kMostBytes = 24'000;  // the longest vector of a rank

template <typename T>
T one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[random.below(values.size())];
}

int up_to(Random& random, int most) {
  return 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(most)));
}

// Returns mostly random parameters that the algorithm accepts.
AlgorithmParameters draw_parameters(Random& random, const Algorithm& algorithm, int ranks) {
  AlgorithmParameters parameters = complete(algorithm, {.ranks = ranks}).parameters;
  if (random.one_in(3)) {
    return parameters;
  }
  if (parameters.radix != 0) {
    parameters.radix = 1 + up_to(random, 8);
  }
  if (parameters.segments != 0) {
    parameters.segments = up_to(random, 9);
  }
  if (parameters.aggregate != 0) {
    parameters.aggregate = up_to(random, 9);
  }
  if (parameters.local != AlgorithmParameters::Levels{}) {
    parameters.local = {up_to(random, ranks), random.one_in(2) ? up_to(random, 3) : 0};
  }
  return parameters;
}

std::string draw_algorithm(Random& random, const Case& one) {
  std::vector<const Algorithm*> all;
  for (const Algorithm* algorithm : catalog()) {
    if (find_algorithm(one.collective, algorithm->name) == algorithm) {
      all.push_back(algorithm);
    }
  }
  for (;;) {
    const Algorithm& algorithm = *all[random.below(all.size())];
    const Shape shape{.ranks = one.ranks,
                      .root = one.root,
                      .parameters = draw_parameters(random, algorithm, one.ranks)};
    if (can_serve(algorithm, shape)) {
      return full_name(algorithm, shape);
    }
  }
}

// Returns true for work that the communicator does around the operation, without the engine.
bool is_staged(ReduceOp op) {
  return op == ReduceOp::avg || op == ReduceOp::premul_sum;
}

std::size_t draw_count(Random& random, const Case& one, std::size_t slot_bytes) {
  const auto n = static_cast<std::uint64_t>(one.ranks);
  const std::size_t most = kMostBytes / size_of(one.dtype);
  std::size_t count = 0;
  switch (random.below(6)) {
    case 0:
      count = one_of<std::size_t>(random, {0, 1});
      break;
    case 1:
      count = random.below(n + 1);
      break;
    case 2:
      count = 2 * random.below(60) + 1;
      break;
    case 3:  // some slots for each chunk
      count = random.below(3 * n * slot_bytes / size_of(one.dtype)) + 1;
      break;
    case 4:
      count = random.below(1200);
      break;
    default:
      count = random.below(most);
      break;
  }
  return std::min(count, is_vector(one.collective) ? most : most / n);
}

Case draw_case(Random& random, int ranks, std::size_t slot_bytes) {
  Case one;
  one.ranks = ranks;
  one.collective = static_cast<Collective>(random.below(kCollectiveCount));
  do {
    one.dtype = static_cast<Dtype>(random.below(kDtypeCount));
    one.op = static_cast<ReduceOp>(random.below(kReduceOpCount));
  } while (!defined(one.collective, one.dtype, one.op) || is_staged(one.op));
  one.op = has_op(one.collective) ? one.op : ReduceOp::sum;
  one.root = has_root(one.collective) ? up_to(random, ranks) - 1 : 0;
  one.algorithm = draw_algorithm(random, one);
  one.count = draw_count(random, one, slot_bytes);
  one.in_place = random.one_in(2);
  one.gaps = is_v(one.collective) && random.one_in(2);
  one.skew = random.one_in(5) ? random.below(9) : 0;
  one.seed = random.below(1'000'000);
  return one;
}

// A network with room for small programs, as every real network has.
void draw_fair(Random& random, sim::NetworkOptions& network) {
  network.inline_bytes = one_of<std::size_t>(random, {256, 272, 512});
  network.slot_bytes = one_of<std::size_t>(random, {512, 1024, 4096, 65536});
  network.lane_bytes = one_of<std::size_t>(random, {1536, 2048, 5000});
  network.lane_slots = up_to(random, 4);
  network.unreported_bytes = one_of<std::size_t>(random, {0, 100, 448});
}

// The least that the engine needs.
void draw_poor(Random& random, sim::NetworkOptions& network) {
  network.inline_bytes = one_of<std::size_t>(random, {0, 1, 8, 16, 40});
  network.slot_bytes = one_of<std::size_t>(random, {8, 16, 48, 64, 256, 1024});
  network.inline_bytes = std::min(network.inline_bytes, network.slot_bytes);
  network.lane_bytes = one_of<std::size_t>(random, {1, 64, 200, 600});
  network.lane_slots = up_to(random, 2);
  network.unreported_bytes = one_of<std::size_t>(random, {0, 0, 100});
}

sim::InjectedFault draw_fault(Random& random, int ranks) {
  if (random.one_in(2)) {
    return {};
  }
  return {.kind = static_cast<sim::InjectedFault::Kind>(1 + random.below(4)),
          .rank = up_to(random, ranks) - 1,
          .at = random.below(std::uint64_t{1} << random.below(8))};
}

}  // namespace

ChaosTrial draw_chaos(std::uint64_t seed) {
  Random random(seed);
  ChaosTrial trial{.seed = seed};
  const int ranks = up_to(random, kMostRanks);
  sim::NetworkOptions& network = trial.network;
  network.ranks = ranks;
  (random.one_in(2) ? draw_fair : draw_poor)(random, network);
  network.multicast = !random.one_in(4);
  network.sharing = random.one_in(2) ? 0 : random.one_in(3) ? random.next() : ~std::uint64_t{0};
  network.delay = one_of<std::uint64_t>(random, {0, 3, 30});
  network.told_late = one_of<std::uint64_t>(random, {0, 3, 30, 200});
  network.seed = random.next();
  network.fault = draw_fault(random, ranks);
  network.offering = random.one_in(2) ? 0 : random.one_in(3) ? random.next() : ~std::uint64_t{0};
  trial.order = static_cast<engine::PollOrder>(random.below(engine::kOrders));
  for (int i = up_to(random, 3); i > 0; --i) {
    trial.cases.push_back(draw_case(random, ranks, network.slot_bytes));
  }
  network.taken_late = one_of<std::uint64_t>(random, {0, 0, 10});
  return trial;
}

std::string to_text(const ChaosTrial& trial) {
  constexpr const char* kFaults[] = {"none", "stops", "signature", "shorter", "longer"};
  constexpr const char* kNames[] = {"in turn", "random", "greedy", "starving"};
  const sim::NetworkOptions& network = trial.network;
  std::string text;
  for (const Case& one : trial.cases) {
    text += "    " + to_line(one) + "\n";
  }
  text += "    inline " + std::to_string(network.inline_bytes) + ", slots " +
          std::to_string(network.lane_slots) + " x " + std::to_string(network.slot_bytes) +
          ", lane " + std::to_string(network.lane_bytes) + " + " +
          std::to_string(network.unreported_bytes) + ", delay " + std::to_string(network.delay) +
          ", told late " + std::to_string(network.told_late) + ", taken late " +
          std::to_string(network.taken_late) + (network.multicast ? ", multicast" : "") +
          (network.sharing != 0 ? ", shared" : "") + (network.offering != 0 ? ", offered" : "") +
          ", polled " + kNames[static_cast<std::size_t>(trial.order)];
  if (network.fault.kind != sim::InjectedFault::Kind::none) {
    text += ", fault: " + std::string(kFaults[static_cast<std::size_t>(network.fault.kind)]) +
            " at " + std::to_string(network.fault.at) + " of rank " +
            std::to_string(network.fault.rank);
  }
  return text + "\n";
}

}  // namespace unisono::testing
