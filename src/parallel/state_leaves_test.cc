// Gradients whose leaves are summed by the fixed tree have the same bits under every layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "parallel/state_units.h"
#include "unisono/parallel/gradient_buckets.hpp"
#include "unisono/parallel/mesh.hpp"

namespace unisono::parallel {
namespace {

// Numbers whose sums depend on their order.
float leaf_value(std::size_t unit, std::size_t i, std::size_t leaf, int step) {
  std::mt19937_64 random(((unit * 1000 + i) * 1000 + leaf) * 10 + static_cast<std::size_t>(step));
  const auto mantissa = static_cast<float>(random() % 16'777'216) - 8'388'608.0F;
  return std::ldexp(mantissa, static_cast<int>(random() % 9) - 26);
}

constexpr std::size_t kLeaves = 12;

struct LeafRun {
  std::string mesh;
  int stage = 0;
  Dtype dtype = Dtype::f32;
  bool reversed = false;  // for unit 0, the last ranks have the first leaves
  bool by_node = false;   // sum leaves by tree node before they are ready
};

std::vector<float> sum_of_node(std::size_t unit, std::size_t count, const Leaves& node, int step) {
  TreeSum sum({.count = count, .leaves = node.count});
  std::vector<float> values(count);
  for (std::size_t leaf = node.first; leaf < node.first + node.count; ++leaf) {
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = leaf_value(unit, i, leaf, step);
    }
    sum.add(values.data());
  }
  sum.sum(values.data());
  return values;
}

// Returns the weights of all units, and the norms, after some steps.
std::vector<std::vector<float>> run_leaves(Communicator& comm, const LeafRun& run) {
  Mesh mesh = Mesh::create(comm, run.mesh);
  Communicator& axis = mesh.axis("dp");
  ShardedState state(axis, kUnits,
                     {.stage = run.stage,
                      .dtype = run.dtype,
                      .max_norm = 3,
                      .replicas = mesh.size("rep") > 1 ? &mesh.axis("rep") : nullptr,
                      .leaves = even_leaves(kLeaves, comm.size())});
  std::vector<Leaves> reversed = even_leaves(kLeaves, comm.size());
  std::ranges::reverse(reversed);
  if (run.reversed) {
    state.set_leaves(0, reversed);
  }
  for (std::size_t unit = 0; unit < state.units(); ++unit) {
    state.set(unit, std::vector<float>(state.count(unit), 0.5F));
  }
  std::vector<std::vector<float>> results(1);
  const auto rank = static_cast<std::size_t>(comm.rank());
  for (int step = 1; step <= 3; ++step) {
    for (std::size_t unit = state.units(); unit-- > 0;) {
      const Leaves mine =
          run.reversed && unit == 0 ? reversed[rank] : even_leaves(kLeaves, comm.size())[rank];
      state.parameters(unit);
      std::vector<Leaves> nodes = subtrees(kLeaves, mine);
      if (!run.by_node) {
        nodes.clear();
        for (std::size_t leaf = 0; leaf < mine.count; ++leaf) {
          nodes.push_back({.first = mine.first + leaf, .count = 1});
        }
      }
      for (const Leaves& node : nodes) {
        const std::vector<float> values = sum_of_node(unit, state.count(unit), node, step);
        const std::span<std::byte> gradients = state.gradients(unit);
        for (std::size_t i = 0; i < state.count(unit); ++i) {
          const float value = values[i];
          if (run.dtype == Dtype::f32) {
            std::memcpy(&gradients[i * sizeof(float)], &value, sizeof(float));
          } else {
            const bf16 narrow = to_bf16(value);
            std::memcpy(&gradients[i * sizeof(narrow)], &narrow, sizeof(narrow));
          }
        }
        if (run.by_node) {
          state.leaf_ready(unit, node);
        } else {
          state.leaf_ready(unit, node.first);
        }
      }
      state.gradients_ready(unit);
      state.release(unit);
    }
    results.front().push_back(static_cast<float>(state.step()));
  }
  for (std::size_t unit = 0; unit < state.units(); ++unit) {
    results.push_back(state.whole(unit));
  }
  return results;
}

TEST(ShardedState, WithLeavesHasTheSameBitsUnderEveryLayout) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    std::vector<std::vector<float>> alone;
    run_threads(1, [&](Communicator& comm) {
      alone = run_leaves(comm, {.mesh = "rep=1,dp=1", .dtype = dtype});
    });
    ASSERT_EQ(alone.size(), kUnits.size() + 1);
    for (const char* mesh : {"rep=1,dp=1", "rep=1,dp=2", "rep=1,dp=3", "rep=1,dp=4", "rep=2,dp=2",
                             "rep=3,dp=2", "rep=1,dp=5"}) {
      for (const int stage : {0, 1, 2, 3}) {
        for (const bool reversed : {false, true}) {
          // Node sums are not rounded to bf16 after each leaf.
          const bool by_node = dtype == Dtype::f32 && stage % 2 == 1;
          run_threads(MeshShape::parse(mesh).ranks(), [&](Communicator& comm) {
            EXPECT_EQ(run_leaves(comm, {.mesh = mesh,
                                        .stage = stage,
                                        .dtype = dtype,
                                        .reversed = reversed,
                                        .by_node = by_node}),
                      alone)
                << mesh << ", stage " << stage << ", " << to_string(dtype) << ", rank "
                << comm.rank();
          });
        }
      }
    }
  }
}

// The norm is exact, so that neither the stage nor the ranks change it.
TEST(ShardedState, NormHasTheSameBitsUnderEveryLayout) {
  double alone = 0;
  const auto norm = [](Communicator& comm, int stage) {
    ShardedState state(comm, kUnits, {.stage = stage});
    for (std::size_t unit = state.units(); unit-- > 0;) {
      state.parameters(unit);
      const std::span<float> gradients = state.gradients_f32(unit);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        gradients[i] = leaf_value(unit, i, 0, 0);
      }
      state.gradients_ready(unit);
    }
    return state.step();
  };
  run_threads(1, [&](Communicator& comm) { alone = norm(comm, 0); });
  for (const int ranks : {2, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      run_threads(ranks, [&](Communicator& comm) { EXPECT_EQ(norm(comm, stage), alone); });
    }
  }
}

TEST(ShardedState, NamesLeavesThatAreMissingOrAddedTwice) {
  run_threads(1, [](Communicator& comm) {
    EXPECT_THROW(ShardedState(comm, kUnits, {.leaves = even_leaves(4, 2)}), Error);
    ShardedState plain(comm, {{{.name = "w", .count = 4}}}, {});
    EXPECT_THROW(plain.leaf_ready(0, 0), Error);
    ShardedState state(comm, {{{.name = "w", .count = 4}}}, {.leaves = even_leaves(2, 1)});
    state.leaf_ready(0, 1);
    EXPECT_THROW(state.leaf_ready(0, 1), Error);
    EXPECT_THROW(state.set_leaves(0, even_leaves(3, 1)), Error);
    EXPECT_THROW(state.gradients_ready(0), Error);
  });
}

TEST(GradientBuckets, WithLeavesHaveTheSameBitsOnAnyNumberOfRanks) {
  constexpr std::size_t kCounts[] = {5, 700, 1, 333};
  const auto run = [&](Communicator& comm, ReduceOp op) {
    const std::vector<Leaves> leaves = even_leaves(kLeaves, comm.size());
    const Leaves mine = leaves[static_cast<std::size_t>(comm.rank())];
    GradientBuckets buckets(comm, {.first_bytes = 64, .op = op, .leaves = leaves});
    for (const std::size_t count : kCounts) {
      buckets.add(std::to_string(count), count);
    }
    std::vector<float> results;
    for (int step = 0; step < 3; ++step) {
      for (std::size_t leaf = mine.first; leaf < mine.first + mine.count; ++leaf) {
        buckets.begin(leaf + 1 == mine.first + mine.count);
        for (std::size_t g = 0; g < std::size(kCounts); ++g) {
          const std::span<float> gradient = buckets.gradient(g);
          for (std::size_t i = 0; i < gradient.size(); ++i) {
            gradient[i] += leaf_value(g, i, leaf, step);
          }
          buckets.ready(g);
        }
        buckets.finish();
      }
      for (std::size_t g = 0; g < std::size(kCounts); ++g) {
        const std::span<const float> gradient = buckets.gradient(g);
        results.insert(results.end(), gradient.begin(), gradient.end());
      }
    }
    return results;
  };
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
    std::vector<float> alone;
    run_threads(1, [&](Communicator& comm) { alone = run(comm, op); });
    for (const int ranks : {2, 3, 4, 5}) {
      run_threads(ranks, [&](Communicator& comm) { EXPECT_EQ(run(comm, op), alone); });
    }
  }
  run_threads(1, [](Communicator& comm) {
    EXPECT_THROW(GradientBuckets(comm, {.leaves = even_leaves(1, 2)}), Error);
    GradientBuckets buckets(comm, {.leaves = even_leaves(2, 1)});
    buckets.add("w", 1);
    buckets.begin();
    EXPECT_THROW(buckets.ready(0), Error) << "leaf 1 is missing";
  });
}

}  // namespace
}  // namespace unisono::parallel
