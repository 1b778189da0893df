// The lowered programs of the whole catalogue finish with correct results on the poorest possible
// transport: every lane holds only one message of one short segment (or one reference to the
// sender's memory), and the ranks are polled in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "base/testing_sanitizers.h"
#include "engine/bound_program.h"
#include "engine/executor.h"
#include "engine/simulated_ranks.h"
#include "schedule/verify.h"

namespace unisono::engine {
namespace {

std::uint64_t value_of(int rank, int chunk, std::size_t index) {
  return static_cast<std::uint64_t>(rank + 1) * 1'000'003 +
         static_cast<std::uint64_t>(chunk) * 7919 + index * 31;
}

// One rank: its program, its buffers, its executor.
struct Rank {
  std::vector<ChunkPlace> places;
  BoundProgram program;
  std::vector<std::uint64_t> first, second, scratch;
  std::uint64_t* in = nullptr;
  std::uint64_t* out = nullptr;
  std::unique_ptr<Executor> executor;
};

// The way in which messages longer than an inline message are sent.
enum class Way { slots, shared, offered };

struct Trial {
  const Schedule& schedule;
  bool in_place = false;
  std::size_t count = 1;  // as in Call
  std::size_t slot_bytes = 16;
  Way way = Way::slots;
};

void set_buffers(const Trial& trial, int rank, Rank& mine) {
  const Schedule& schedule = trial.schedule;
  std::ptrdiff_t shift = 0;  // in place: distance of a chunk's output before its input
  std::size_t end = 64;
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    const ChunkPlace& place = mine.places[static_cast<std::size_t>(chunk)];
    end = std::max({end, place.input + place.bytes, place.output + place.bytes});
    if (has_input(schedule, rank, chunk) && needs_output(schedule, rank, chunk)) {
      shift =
          (static_cast<std::ptrdiff_t>(place.output) - static_cast<std::ptrdiff_t>(place.input)) /
          8;
    }
  }
  mine.first.assign(2 * end / 8 + 8, 0);
  mine.second.assign(2 * end / 8 + 8, 0);
  mine.in = mine.first.data() + (trial.in_place && shift > 0 ? shift : 0);
  mine.out = (trial.in_place ? mine.first.data() + (shift < 0 ? -shift : 0) : mine.second.data());
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    const ChunkPlace& place = mine.places[static_cast<std::size_t>(chunk)];
    for (std::size_t i = 0; has_input(schedule, rank, chunk) && i < place.bytes / 8; ++i) {
      mine.in[place.input / 8 + i] = value_of(rank, chunk, i);
    }
  }
}

std::vector<Rank> make_ranks(const Trial& trial, sim::SimNetwork& network) {
  const Schedule& schedule = trial.schedule;
  const bool pairs = schedule.collective == Collective::all_to_all;
  std::vector<Rank> ranks(static_cast<std::size_t>(schedule.ranks));
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    Rank& mine = ranks[static_cast<std::size_t>(rank)];
    mine.places = lay_out(schedule, rank, {.element = 8, .count = trial.count});
    const Program program =
        lower(schedule, rank, {.in_place = trial.in_place, .contiguous = !pairs});
    mine.program = engine::bind(program, mine.places, 8, extent_of(schedule, rank, mine.places));
    mine.program.small = false;  // which relies on its messages fitting the lanes
    set_buffers(trial, rank, mine);
    mine.scratch.assign(mine.program.scratch_bytes / 8 + 1, 0);
    mine.executor = std::make_unique<Executor>(network.transport(rank));
    mine.executor->start(
        {.program = &mine.program,
         .buffers = {reinterpret_cast<std::byte*>(mine.in), reinterpret_cast<std::byte*>(mine.out),
                     reinterpret_cast<std::byte*>(mine.scratch.data())},
         .reducer = {.kernel = kernels::find_reduce(Dtype::u64, ReduceOp::sum)},
         .signature = 42});
  }
  return ranks;
}

std::uint64_t expected(const Schedule& schedule, int to, int chunk, std::size_t index) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    const bool is_in =
        has_input(schedule, rank, chunk) && contributes(schedule.collective, rank, to);
    sum += is_in ? value_of(rank, chunk, index) : 0;
  }
  return sum;
}

// Returns an empty text, or the failure. Seed 0: the ranks are polled in turn.
std::string run(const Trial& trial, unsigned seed) {
  const Schedule& schedule = trial.schedule;
  sim::SimNetwork network({.ranks = schedule.ranks,
                           .inline_bytes = 8,
                           .slot_bytes = trial.slot_bytes,
                           .lane_bytes = 1,
                           .lane_slots = 1,
                           .sharing = trial.way == Way::shared ? ~std::uint64_t{0} : 0,
                           .offering = trial.way == Way::offered ? ~std::uint64_t{0} : 0,
                           .delay = trial.way == Way::offered ? std::uint64_t{3} : 0});
  std::vector<Rank> ranks = make_ranks(trial, network);
  std::vector<Executor*> executors;
  for (const Rank& rank : ranks) {
    executors.push_back(rank.executor.get());
  }
  const auto ends =
      drive(network, executors, seed == 0 ? PollOrder::in_turn : PollOrder::random, seed);
  if (const std::string stuck = describe(ends) + network.violation(); !stuck.empty()) {
    return stuck;
  }
  for (int rank = 0; rank < schedule.ranks && schedule.collective != Collective::barrier; ++rank) {
    const Rank& mine = ranks[static_cast<std::size_t>(rank)];
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      const ChunkPlace& place = mine.places[static_cast<std::size_t>(chunk)];
      for (std::size_t i = 0; needs_output(schedule, rank, chunk) && i < place.bytes / 8; ++i) {
        if (mine.out[place.output / 8 + i] != expected(schedule, rank, chunk, i)) {
          return "rank " + std::to_string(rank) + ", chunk " + std::to_string(chunk) +
                 ": a wrong result";
        }
      }
    }
  }
  return "";
}

bool can_run_in_place(const Schedule& schedule) {
  return schedule.collective != Collective::all_to_all &&
         schedule.collective != Collective::barrier && verify_in_place(schedule).empty();
}

class Progressing : public ::testing::TestWithParam<const Algorithm*> {};

void expect_progress(const Algorithm& algorithm, Shape shape, std::size_t elements, Way way) {
  if (!can_serve(algorithm, shape)) {
    return;
  }
  const Schedule schedule = build_schedule(algorithm, shape);
  const auto chunks = static_cast<std::size_t>(schedule.chunks);
  const bool vector = algorithm.collective == Collective::all_reduce ||
                      algorithm.collective == Collective::broadcast ||
                      algorithm.collective == Collective::reduce;
  const std::size_t count = algorithm.collective == Collective::barrier ? 1
                            : vector ? elements * chunks + 1  // not divisible
                                     : elements;
  for (const bool in_place : {false, true}) {
    if (in_place && !can_run_in_place(schedule)) {
      continue;
    }
    for (unsigned seed = 0; seed < (kSanitized ? 1U : 3U); ++seed) {
      const Trial trial{.schedule = schedule,
                        .in_place = in_place,
                        .count = count,
                        .slot_bytes = way == Way::shared ? std::size_t{65536} : 16,
                        .way = way};
      ASSERT_EQ(run(trial, seed), "")
          << algorithm.name << " n=" << shape.ranks << " root=" << shape.root
          << (in_place ? " in place" : "") << " way " << static_cast<int>(way) << " order " << seed;
    }
  }
}

TEST_P(Progressing, WithLanesOfOneSegment) {
  for (int ranks = 1; ranks <= 16; ++ranks) {
    expect_progress(*GetParam(), {.ranks = ranks, .root = 0}, 5, Way::slots);
    expect_progress(*GetParam(), {.ranks = ranks, .root = ranks - 1}, 3, Way::slots);
  }
}

TEST_P(Progressing, WithMemoryThatReadersSee) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    expect_progress(*GetParam(), {.ranks = ranks, .root = ranks / 2}, 600, Way::shared);
  }
}

TEST_P(Progressing, WithMemoryThatReadersFetch) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    expect_progress(*GetParam(), {.ranks = ranks, .root = ranks / 2}, 13, Way::offered);
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Progressing,
                         ::testing::ValuesIn(catalog().begin(), catalog().end()),
                         [](const auto& tested) {
                           return std::string(to_string(tested.param->collective)) + "_" +
                                  std::string(tested.param->name);
                         });

TEST(Progress, OfManyRanks) {
  for (const char* name : {"flat", "ring", "halving_doubling"}) {
    const Algorithm& algorithm = *find_algorithm(Collective::all_reduce, name);
    expect_progress(algorithm, {.ranks = 48}, 2, Way::slots);
  }
}

}  // namespace
}  // namespace unisono::engine
