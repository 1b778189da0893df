// Programs with encoded moves on the simulated network: slots of a few blocks, ranks polled in any
// order, messages that are cut in transit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/two_shot_hosts.h"
#include "engine/bound_program.h"
#include "engine/executor.h"
#include "engine/simulated_ranks.h"
#include "kernels/coded_blocks.h"
#include "schedule/roundings.h"

namespace unisono::engine {
namespace {

using Floats = std::vector<float>;
using Hosts = std::vector<int>;

float coded_value(int rank, std::size_t element) {
  return std::sin(static_cast<float>(element * 7 + static_cast<std::size_t>(rank) * 1001));
}

struct CodedRank {
  BoundProgram program;
  Floats in, out;
  std::vector<std::byte> scratch;
  std::unique_ptr<Executor> executor;
};

struct CodedTrial {
  Hosts hosts;
  std::size_t count = 0;
  MoveCode code = MoveCode::i8;
  std::size_t slot_bytes = 256;
  sim::InjectedFault fault = {};
};

std::vector<CodedRank> make_coded_ranks(const CodedTrial& trial, sim::SimNetwork& network) {
  const Schedule schedule =
      encode_moves(algorithms::two_shot_between(trial.hosts), trial.hosts, trial.code);
  std::vector<CodedRank> ranks(trial.hosts.size());
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    CodedRank& mine = ranks[static_cast<std::size_t>(rank)];
    const auto places = lay_out(schedule, rank, {.element = 4, .count = trial.count});
    mine.program =
        engine::bind(lower(schedule, rank, {}), places, 4, extent_of(schedule, rank, places));
    for (std::size_t i = 0; i < trial.count; ++i) {
      mine.in.push_back(coded_value(rank, i));
    }
    mine.out.resize(trial.count);
    mine.scratch.resize(mine.program.scratch_bytes);
    mine.executor = std::make_unique<Executor>(network.transport(rank));
    mine.executor->start(
        {.program = &mine.program,
         .buffers = {reinterpret_cast<std::byte*>(mine.in.data()),
                     reinterpret_cast<std::byte*>(mine.out.data()), mine.scratch.data()},
         .reducer = {.kernel = kernels::find_reduce(Dtype::f32, ReduceOp::sum)},
         .signature = 42});
  }
  return ranks;
}

Floats rounded(MoveCode code, const Floats& values) {
  std::vector<std::byte> coded(coded_bytes(code, values.size()));
  Floats result(values.size());
  kernels::find_coded_blocks(code).encode(coded.data(), values.data(), values.size());
  kernels::find_coded_blocks(code).decode(result.data(), coded.data(), values.size());
  return result;
}

// Computes the expected result with one rank per host, chunk by chunk, directly from the
// definition.
Floats expected_coded(const CodedTrial& trial) {
  const std::size_t ranks = trial.hosts.size();
  Floats all;
  for (std::size_t chunk = 0; chunk < ranks; ++chunk) {
    const std::size_t first = trial.count * chunk / ranks;
    const std::size_t end = trial.count * (chunk + 1) / ranks;
    Floats sum;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Floats input;
      for (std::size_t i = first; i < end; ++i) {
        input.push_back(coded_value(static_cast<int>(rank), i));
      }
      input = rank == chunk ? input : rounded(trial.code, input);
      for (std::size_t i = 0; i < input.size(); ++i) {
        rank == 0 ? sum.push_back(input[i]) : void(sum[i] += input[i]);
      }
    }
    sum = ranks == 1 ? sum : rounded(trial.code, sum);
    all.insert(all.end(), sum.begin(), sum.end());
  }
  return all;
}

struct Outcome {
  std::string stuck;
  std::vector<Floats> outputs;
  bool failed = false;
};

Outcome run_coded(const CodedTrial& trial, unsigned seed) {
  sim::SimNetwork network({.ranks = static_cast<int>(trial.hosts.size()),
                           .inline_bytes = 8,
                           .slot_bytes = trial.slot_bytes,
                           .lane_bytes = 1,
                           .lane_slots = 1,
                           .fault = trial.fault});
  std::vector<CodedRank> ranks = make_coded_ranks(trial, network);
  std::vector<Executor*> executors;
  for (const CodedRank& rank : ranks) {
    executors.push_back(rank.executor.get());
  }
  const auto ends = drive(network, executors, PollOrder::random, seed);
  Outcome outcome{.stuck = describe(ends) + network.violation(), .outputs = {}};
  for (const RankEnd& end : ends) {
    outcome.failed |= end.end == End::failed;
  }
  for (const CodedRank& rank : ranks) {
    outcome.outputs.push_back(rank.out);
  }
  return outcome;
}

TEST(CodedPrograms, MakeWhatTheirDefinitionSays) {
  for (const Hosts& hosts :
       {Hosts{0}, Hosts{0, 1}, Hosts{0, 1, 2}, Hosts{0, 1, 2, 3, 4, 5, 6, 7}}) {
    for (const std::size_t count : {0U, 1U, 7U, 64U, 100U, 1000U, 40'001U}) {
      for (const MoveCode code : {MoveCode::i8, MoveCode::bf16}) {
        for (const std::size_t slot : {128U, 256U, 100'000U}) {
          const CodedTrial trial{.hosts = hosts, .count = count, .code = code, .slot_bytes = slot};
          const Outcome outcome = run_coded(trial, static_cast<unsigned>(count));
          ASSERT_EQ(outcome.stuck, "") << hosts.size() << " " << count << " " << slot;
          for (const Floats& output : outcome.outputs) {
            ASSERT_TRUE(output == expected_coded(trial))
                << hosts.size() << " " << count << " " << slot;
          }
        }
      }
    }
  }
}

TEST(CodedPrograms, GiveAllRanksOfAllHostsTheSame) {
  for (const Hosts& hosts : {Hosts{0, 0, 1, 1}, Hosts{0, 1, 2, 0, 1, 2}, Hosts{0, 0, 0, 1, 2}}) {
    for (const unsigned seed : {1U, 2U, 3U}) {
      const Outcome outcome = run_coded({.hosts = hosts, .count = 3001}, seed);
      ASSERT_EQ(outcome.stuck, "");
      for (const Floats& output : outcome.outputs) {
        ASSERT_TRUE(output == outcome.outputs.front());
      }
    }
  }
}

// Rank 1 sends two pieces to each other rank, twice.
TEST(CodedPrograms, NoticeAMessageOfAnotherLength) {
  using Kind = sim::InjectedFault::Kind;
  for (const Kind kind : {Kind::shorter, Kind::longer, Kind::signature}) {
    for (std::uint64_t at = 0; at < 8; ++at) {
      const Outcome outcome = run_coded(
          {.hosts = {0, 1, 2}, .count = 1000, .fault = {.kind = kind, .rank = 1, .at = at}}, 5);
      EXPECT_TRUE(outcome.failed) << static_cast<int>(kind) << " " << at;
    }
  }
}

}  // namespace
}  // namespace unisono::engine
