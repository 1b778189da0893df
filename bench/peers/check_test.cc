#include "peers/check.h"

#include <gtest/gtest.h>

#include <vector>

namespace unisono::bench {
namespace {

// All ranks of one operation in one process, computed by plain loops.
class World {
 public:
  World(Kind kind, Dtype dtype, std::size_t count, int ranks) : ranks_(ranks), count_(count) {
    for (int rank = 0; rank < ranks; ++rank) {
      Operation operation{.kind = kind, .dtype = dtype, .count = count};
      ins_.emplace_back(input_elements(operation, ranks));
      outs_.emplace_back(output_elements(operation, ranks), -7.0F);
      operations_.push_back(operation);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      Operation& mine = operations_[at(rank)];
      mine.in = ins_[at(rank)].data();
      mine.out = outs_[at(rank)].data();
      fill_input(mine, rank, ranks);
    }
  }

  void carry_out() {
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::size_t i = 0; i < outs_[at(rank)].size(); ++i) {
        outs_[at(rank)][i] = right(rank, i);
      }
    }
  }

  std::uint64_t wrong(int rank) const { return count_wrong(operations_[at(rank)], rank, ranks_); }
  float& out(int rank, std::size_t i) { return outs_[at(rank)][i]; }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  float sum(std::size_t i) const {
    float total = 0.0F;
    for (const std::vector<float>& in : ins_) {
      total += in[i];
    }
    return total;
  }
  float right(int rank, std::size_t i) const {
    switch (operations_[0].kind) {
      case Kind::all_reduce:
      case Kind::reduce:
        return sum(i);
      case Kind::reduce_scatter:
        return sum(at(rank) * count_ + i);
      case Kind::all_gather:
      case Kind::gather:
        return ins_[i / count_][i % count_];
      case Kind::all_to_all:
        return ins_[i / count_][at(rank) * count_ + i % count_];
      case Kind::exchange:
      case Kind::window:
        return ins_[at(rank ^ 1)][i % count_];
      case Kind::broadcast:
        return ins_[0][i];
      case Kind::scatter:
        return ins_[0][at(rank) * count_ + i];
      case Kind::barrier:
        break;
    }
    return 0.0F;
  }

  int ranks_;
  std::size_t count_;
  std::vector<std::vector<float>> ins_;
  std::vector<std::vector<float>> outs_;
  std::vector<Operation> operations_;
};

constexpr Kind kKinds[] = {
    Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::exchange,
    Kind::broadcast,  Kind::reduce,     Kind::gather,         Kind::scatter,    Kind::window};

TEST(Check, AcceptsWhatPlainLoopsGive) {
  for (const Kind kind : kKinds) {
    for (const std::size_t count : {1U, 2U, 7U, 1024U}) {
      for (const int ranks : {2, 4, 8}) {
        World world(kind, Dtype::f32, count, ranks);
        world.carry_out();
        for (int rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(world.wrong(rank), 0U) << "kind " << static_cast<int>(kind);
        }
      }
    }
  }
}

TEST(Check, SeesOneWrongElement) {
  for (const Kind kind : kKinds) {
    World world(kind, Dtype::f32, 5, 4);
    world.carry_out();
    world.out(0, 3) += 1.0F;
    EXPECT_EQ(world.wrong(0), 1U) << "kind " << static_cast<int>(kind);
  }
}

TEST(Check, SeesAnOutputThatNobodyWrote) {
  World world(Kind::all_reduce, Dtype::f32, 64, 2);
  EXPECT_EQ(world.wrong(0), 64U);
}

TEST(Check, InputsDifferBetweenRanks) {
  // A rank that returns its own data must fail.
  World world(Kind::exchange, Dtype::f32, 64, 2);
  for (std::size_t i = 0; i < 64; ++i) {
    world.out(0, i) = static_cast<float>(i % 513);
  }
  EXPECT_EQ(world.wrong(0), 64U);
}

TEST(Check, SumsAreExactInNarrowDtypes) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f8e4m3, Dtype::f8e5m2}) {
    std::vector<std::uint16_t> in(64);
    const Operation operation{
        .kind = Kind::all_reduce, .dtype = dtype, .count = 64, .in = in.data(), .out = in.data()};
    // For one rank, the sum equals the input.
    fill_input(operation, 0, 1);
    EXPECT_EQ(count_wrong(operation, 0, 1), 0U) << to_string(dtype);
    in[5] = static_cast<std::uint16_t>(in[5] ^ 0x1010U);
    EXPECT_GT(count_wrong(operation, 0, 1), 0U) << to_string(dtype);
  }
}

}  // namespace
}  // namespace unisono::bench
