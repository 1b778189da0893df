// Tests moving expert weights between ranks.
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/testing_ranks.h"
#include "unisono/parallel/expert_balance.hpp"

namespace unisono {
namespace {

using Places = std::vector<std::vector<int>>;

// Arriving experts use the memory of departing experts.
const Places kBefore = {{0, 1}, {2, 3}, {4, 5}};
const Places kAfter = {{0, 4}, {5, 1}, {0, 2}};

// Weights of this rank's experts. All weights of an expert are equal to its number.
struct Weights {
  Weights(int rank, std::size_t floats)
      : before(kBefore[static_cast<std::size_t>(rank)]),
        after(kAfter[static_cast<std::size_t>(rank)]) {
    for (const int expert : before) {
      physical_experts.emplace_back(floats, static_cast<float>(expert));
    }
  }
  std::span<float> find(const std::vector<int>& placement, int expert) {
    for (std::size_t physical = 0; physical < physical_experts.size(); ++physical) {
      if (placement[physical] == expert) {
        return physical_experts[physical];
      }
    }
    throw std::out_of_range("no expert " + std::to_string(expert));
  }
  void move(Communicator& comm, const std::vector<ExpertMove>& moves, std::size_t bytes) {
    move_experts(
        comm, moves, bytes, [&](int expert) { return std::as_bytes(find(before, expert)); },
        [&](int expert) { return std::as_writable_bytes(find(after, expert)); });
  }
  void expect(const std::vector<int>& placement) const {
    for (std::size_t physical = 0; physical < physical_experts.size(); ++physical) {
      EXPECT_EQ(physical_experts[physical],
                std::vector<float>(physical_experts[physical].size(),
                                   static_cast<float>(placement[physical])));
    }
  }
  std::vector<int> before;
  std::vector<int> after;
  std::vector<std::vector<float>> physical_experts;
};

TEST(ExpertMoves, BytesAreThoseOfTheExperts) {
  const auto bytes = bytes_of_moves(find_expert_moves(kBefore, kAfter), 3, 10);
  const std::vector<std::vector<std::size_t>> expected = {{0, 10, 10}, {0, 0, 10}, {10, 10, 0}};
  EXPECT_EQ(bytes, expected);
  EXPECT_THROW(bytes_of_moves(std::vector<ExpertMove>{{.expert = 0, .from = 0, .to = 3}}, 3, 1),
               Error);
}

TEST(ExpertMoves, EachExpertComesIntoThePlaceOfOneThatGoes) {
  comm::testing::run_ranks(3, [](Communicator& comm) {
    for (const std::size_t floats : {0U, 1U, 37U}) {
      Weights weights(comm.rank(), floats);
      weights.move(comm, {}, floats * sizeof(float));
      weights.expect(weights.before);
      weights.move(comm, find_expert_moves(kBefore, kAfter), floats * sizeof(float));
      weights.expect(weights.after);
    }
  });
}

TEST(ExpertMoves, MistakesAreToldToAllAndNothingIsWritten) {
  comm::testing::run_ranks(3, [](Communicator& comm) {
    Weights weights(comm.rank(), comm.rank() == 1 ? 4 : 3);
    const auto refused = [&](const std::vector<ExpertMove>& moves, const std::string& text) {
      try {
        weights.move(comm, moves, 3 * sizeof(float));
        ADD_FAILURE() << "moved: " << text;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      }
      weights.expect(weights.before);
    };
    auto moves = find_expert_moves(kBefore, kAfter);
    refused(moves, "move_experts() of rank 1: expert 2 has 16 bytes, not 12");
    weights = Weights(comm.rank(), 3);
    moves.push_back({.expert = 7, .from = 2, .to = 0});
    refused(moves, "of rank 0: it cannot describe where an expert is: no expert 7");
    moves.back().to = 3;
    refused(moves, "expert 7 moves from rank 2 to rank 3, but there are 3");
    moves.pop_back();
    if (comm.rank() == 2) {
      std::swap(moves[0], moves[1]);
    }
    refused(moves, "rank 0 calls move_experts() with other moves than rank 2");
  });
}

}  // namespace
}  // namespace unisono
