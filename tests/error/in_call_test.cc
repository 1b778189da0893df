// If each rank's result depends on all ranks, all ranks get the error of a disagreement in that
// call, and none returns. docs/reliability.md promises this.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "unisono/communicator.hpp"

namespace unisono::testing {
namespace {

struct Case {
  Call call = {};
  Call of_one = {};  // the call of the rank that disagrees
  int ranks = 2;
  int one = 0;
};

std::string describe(const Call& call) {
  return std::string(to_string(call.collective)) + " of " + std::to_string(call.count) +
         " of type " + std::to_string(static_cast<int>(call.dtype)) + ", operation " +
         std::to_string(static_cast<int>(call.reduction.op));
}

Case draw(std::mt19937& random) {
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  const auto collective = [&] {
    return any(Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
               Collective::all_to_all);
  };
  Case drawn{.ranks = any(2, 3, 4, 5)};
  drawn.one = static_cast<int>(random() % static_cast<unsigned>(drawn.ranks));
  drawn.call = {
      .collective = collective(),
      .count = any(std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{50'000}),
      .dtype = Dtype::f32};
  drawn.of_one = drawn.call;
  switch (random() % 4) {
    case 0:
      ++drawn.of_one.count;
      break;
    case 1:
      drawn.of_one.dtype = Dtype::i32;
      break;
    case 2:
      drawn.of_one.count *= 3;
      break;
    default:
      do {
        drawn.of_one.collective = collective();
      } while (drawn.of_one.collective == drawn.call.collective);
  }
  return drawn;
}

// Empty if the call threw `mismatch`.
std::string call_it(const Case& drawn, int rank, const std::string& job) {
  Communicator world =
      Communicator::connect(comm::testing::options_for(rank, drawn.ranks, job, 60'000));
  Call call = rank == drawn.one ? drawn.of_one : drawn.call;
  const std::size_t most = call.count * static_cast<std::size_t>(drawn.ranks);
  const std::vector<float> in(most);
  std::vector<float> out(most);
  call.in = in.data();
  call.out = out.data();
  try {
    world.run(call);
  } catch (const Error& error) {
    return error.code() == ErrorCode::mismatch ? "" : error.what();
  }
  return "it returned";
}

TEST(InTheCall, AllRanksAreToldOfADisagreement) {
  constexpr int kCases = 60;
  std::mt19937 random(std::random_device{}());
  int told = 0;
  for (int i = 0; i < kCases; ++i) {
    const auto seed = static_cast<unsigned>(random());
    std::mt19937 own(seed);
    const Case drawn = draw(own);
    const std::string job = comm::testing::unique_name("in_call");
    const auto said =
        comm::testing::as_threads(drawn.ranks, [&](int rank) { return call_it(drawn, rank, job); });
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      told += said[rank].empty() ? 1 : 0;
      EXPECT_EQ(said[rank], "") << "rank " << rank << " of " << drawn.ranks << ", seed " << seed
                                << ": " << describe(drawn.call) << "; rank " << drawn.one << ": "
                                << describe(drawn.of_one);
    }
  }
  std::printf("%d disagreements: %d ranks were told in the call\n", kCases, told);
}

}  // namespace
}  // namespace unisono::testing
