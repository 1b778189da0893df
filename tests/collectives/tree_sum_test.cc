// Sums over a fixed tree of leaves, compared with an oracle that builds the tree in one process:
// the same bits for any number of ranks, of leaves on each rank, and of hosts.
#include "unisono/tree_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/hash.h"
#include "base/testing_sanitizers.h"
#include "ranks.h"
#include "unisono/error.hpp"

namespace unisono::testing {
namespace {

template <typename T, typename Number>
T narrow(Number number) {
  if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(number));
  } else if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(number));
  } else {
    return static_cast<T>(number);
  }
}

template <typename T>
auto widen(T number) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    return to_float(number);
  } else {
    return number;
  }
}

// Elements whose sums depend on the order.
template <typename T>
T leaf_value(std::size_t leaf, std::size_t element) {
  const std::uint64_t bits =
      Hash().add(static_cast<std::uint64_t>(leaf)).add(static_cast<std::uint64_t>(element)).value();
  const double mantissa = 1.0 + std::ldexp(static_cast<double>(bits >> 12), -52);
  const double number =
      std::ldexp((bits & 1) != 0 ? -mantissa : mantissa, static_cast<int>((bits >> 1) % 9));
  return narrow<T>(number);
}

template <typename T>
std::vector<T> leaf_of(std::size_t leaf, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = leaf_value<T>(leaf, i);
  }
  return values;
}

// The oracle.
template <typename T>
T tree(std::size_t first, std::size_t end, std::size_t element) {
  if (end - first == 1) {
    return leaf_value<T>(first, element);
  }
  std::size_t half = 1;
  while (2 * half < end - first) {
    half *= 2;
  }
  return narrow<T>(widen(tree<T>(first, first + half, element)) +
                   widen(tree<T>(first + half, end, element)));
}

template <typename T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Returns "", or the difference.
template <typename T>
std::string compare(const std::vector<T>& found, std::size_t leaves, std::size_t offset) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const T wanted = tree<T>(0, leaves, offset + i);
    if (!same_bits(found[i], wanted)) {
      return "element " + std::to_string(offset + i) + " is " +
             std::to_string(static_cast<double>(widen(found[i]))) + ", not " +
             std::to_string(static_cast<double>(widen(wanted)));
    }
  }
  return "";
}

struct TreeCase {
  std::size_t count = 1;
  std::vector<std::size_t> leaves;  // by rank
};

std::string text_of(const TreeCase& one) {
  std::string text = " (count " + std::to_string(one.count) + ", leaves";
  for (const std::size_t leaves : one.leaves) {
    text += " " + std::to_string(leaves);
  }
  return text + ")";
}

template <typename T>
std::string run_tree_case(Communicator& communicator, const TreeCase& one) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::size_t first =
      std::accumulate(one.leaves.begin(), one.leaves.begin() + communicator.rank(), std::size_t{0});
  const std::size_t all = std::accumulate(one.leaves.begin(), one.leaves.end(), std::size_t{0});
  TreeSum sum({.dtype = *kDtypeOf<T>, .count = one.count, .leaves = all, .first = first});
  for (std::size_t leaf = first; leaf < first + one.leaves[rank]; ++leaf) {
    EXPECT_EQ(sum.next(), leaf);
    sum.add(leaf_of<T>(leaf, one.count).data());
  }
  std::vector<T> out(one.count);
  sum.all_reduce(communicator, one.leaves, out.data());
  std::string wrong = compare(out, all, 0);
  if (one.count % one.leaves.size() == 0) {
    std::vector<T> part(one.count / one.leaves.size());
    sum.reduce_scatter(communicator, one.leaves, part.data());
    wrong += compare(part, all, rank * part.size());
  }
  const auto root = static_cast<int>(all % one.leaves.size());
  out.assign(one.count, T{});
  sum.reduce(communicator, one.leaves, root, out.data());
  wrong += communicator.rank() == root ? compare(out, all, 0) : "";
  return wrong.empty() ? "" : wrong + text_of(one);
}

// One leaf on each rank, as plain calls.
template <typename T>
std::string run_plain_calls(Communicator& communicator, std::size_t count,
                            std::string_view algorithm) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::vector<T> in = leaf_of<T>(rank, count * ranks);
  std::vector<T> out(count);
  Call call{.collective = Collective::all_reduce,
            .in = in.data(),
            .out = out.data(),
            .count = count,
            .dtype = *kDtypeOf<T>,
            .algorithm = algorithm};
  communicator.run(call);
  std::string wrong = compare(out, ranks, 0);
  call.collective = Collective::reduce_scatter;
  communicator.run(call);
  wrong += compare(out, ranks, rank * count);
  call.collective = Collective::reduce;
  for (call.root = 0; call.root < communicator.size(); ++call.root) {
    out.assign(count, T{});
    communicator.run(call);
    wrong += communicator.rank() == call.root ? compare(out, ranks, 0) : "";
  }
  return wrong;
}

struct TreeLayout {
  int ranks = 1;
  int ranks_per_host = 1;
  int threads = 1;
};

std::vector<std::string> on_layout(const TreeLayout& layout, const std::string& algorithm,
                                   double max_error, const RankBody& body) {
  const std::string job = comm::testing::unique_name("tree");
  return comm::testing::as_threads(layout.ranks, [&](int rank) {
    ConnectOptions options = test_options(rank, layout.ranks, job);
    if (layout.ranks_per_host < layout.ranks) {
      options.address = comm::testing::loopback_address(job);
      options.token = comm::testing::kToken;
      options.host = "host-" + std::to_string(rank / layout.ranks_per_host);
    }
    options.algorithm = algorithm;
    options.max_error = max_error;
    options.threads = layout.threads;
    Communicator communicator = Communicator::connect(options);
    return body(communicator);
  });
}

std::vector<TreeLayout> tree_layouts() {
  std::vector<TreeLayout> all;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const int per_host : {8, 4, 3, 1}) {
      if (per_host == 8 || per_host < ranks) {
        all.push_back({.ranks = ranks, .ranks_per_host = std::min(per_host, ranks)});
      }
    }
  }
  all.push_back({.ranks = 4, .ranks_per_host = 4, .threads = 2});
  return all;
}

void expect_all_right(const std::vector<std::string>& said, const TreeLayout& layout) {
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    EXPECT_EQ(said[rank], "") << "rank " << rank << " of " << layout.ranks << ", "
                              << layout.ranks_per_host << " on each host";
  }
}

// The same 24 leaves, split equally and unequally between 1 to 8 ranks.
TEST(TreeSum, HasTheSameBitsForAnyNumberOfRanks) {
  for (const TreeLayout& layout : tree_layouts()) {
    const auto ranks = static_cast<std::size_t>(layout.ranks);
    TreeCase even{.count = 840, .leaves = {}};
    TreeCase uneven{.count = 333, .leaves = {}};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      even.leaves.push_back(24 * (rank + 1) / ranks - 24 * rank / ranks);
      uneven.leaves.push_back(rank + 1 == ranks ? 24 - rank * 2 : 2);
    }
    expect_all_right(on_layout(layout, "", 0,
                               [&](Communicator& communicator) {
                                 std::string wrong;
                                 for (const TreeCase& one : {even, uneven}) {
                                   wrong += run_tree_case<float>(communicator, one);
                                   wrong += run_tree_case<double>(communicator, one);
                                   wrong += run_tree_case<bf16>(communicator, one);
                                   wrong += run_tree_case<f16>(communicator, one);
                                 }
                                 return wrong;
                               }),
                     layout);
  }
}

TEST(TreeSum, HasTheBitsOfTheOracleInRandomCases) {
  const bool full = std::getenv("UNISONO_TEST_FULL") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  const int cases = full ? 500 : kSanitized ? 5 : 50;
  std::uint64_t seed = 1;
  for (const TreeLayout& layout : tree_layouts()) {
    ++seed;
    expect_all_right(on_layout(layout, "", 0,
                               [&, seed](Communicator& communicator) {
                                 std::mt19937_64 random(seed);  // all ranks draw the same
                                 std::string wrong;
                                 for (int i = 0; i < cases; ++i) {
                                   TreeCase one;
                                   const std::size_t equal = std::size_t{1} << random() % 3;
                                   const std::uint64_t kind = random() % 4;
                                   for (int rank = 0; rank < layout.ranks; ++rank) {
                                     one.leaves.push_back(kind == 0 ? equal : random() % 5);
                                   }
                                   one.leaves[random() % one.leaves.size()] += kind == 0 ? 0 : 1;
                                   constexpr std::size_t kCounts[] = {0, 1, 7, 64, 840, 5000};
                                   one.count = kCounts[random() % std::size(kCounts)];
                                   switch (random() % 4) {
                                     case 0:
                                       wrong += run_tree_case<float>(communicator, one);
                                       break;
                                     case 1:
                                       wrong += run_tree_case<double>(communicator, one);
                                       break;
                                     case 2:
                                       wrong += run_tree_case<bf16>(communicator, one);
                                       break;
                                     default:
                                       wrong += run_tree_case<f16>(communicator, one);
                                   }
                                 }
                                 return wrong;
                               }),
                     layout);
  }
}

// Leaves in any order: the parts are dealt to the ranks in reverse order, and each rank adds its
// last leaf first.
TEST(TreeSum, TakesLeavesAndRanksInAnyOrder) {
  constexpr std::size_t kCount = 37;
  constexpr std::size_t kLeaves = 11;
  for (const int ranks : {1, 2, 3, 4, 6}) {
    expect_all_right(
        on_layout({.ranks = ranks, .ranks_per_host = ranks}, "", 0,
                  [&](Communicator& communicator) {
                    std::vector<Leaves> leaves = even_leaves(kLeaves, ranks);
                    std::ranges::reverse(leaves);
                    const Leaves mine = leaves[static_cast<std::size_t>(communicator.rank())];
                    TreeSum sum({.count = kCount, .leaves = kLeaves, .first = mine.first});
                    for (std::size_t i = mine.count; i-- > 0;) {
                      sum.add(mine.first + i, leaf_of<float>(mine.first + i, kCount).data());
                    }
                    std::vector<float> out(kCount);
                    sum.all_reduce(communicator, leaves, out.data());
                    return compare(out, kLeaves, 0);
                  }),
        {.ranks = ranks, .ranks_per_host = ranks});
  }
}

// Over the rows and then the columns of a grid of ranks, as replicas of a sharded state are summed.
TEST(TreeSum, SumsFurtherOverAnotherCommunicator) {
  constexpr std::size_t kCount = 24;
  for (const std::size_t all : {8U, 12U, 7U}) {
    expect_all_right(
        on_layout({.ranks = 6, .ranks_per_host = 6}, "", 0,
                  [&](Communicator& communicator) {
                    const int row = communicator.rank() / 3;
                    Communicator inside = communicator.split(row, communicator.rank());
                    Communicator between =
                        communicator.split(communicator.rank() % 3, communicator.rank());
                    const std::vector<Leaves> leaves = even_leaves(all, 6);
                    const Leaves mine = leaves[static_cast<std::size_t>(communicator.rank())];
                    TreeSum sum({.count = kCount, .leaves = all, .first = mine.first});
                    for (std::size_t i = 0; i < mine.count; ++i) {
                      sum.add(leaf_of<float>(sum.next(), kCount).data());
                    }
                    const std::vector<std::size_t> parts = {8, 9, 7};
                    const TreeSum part =
                        std::move(sum)
                            .scatter_async(inside, std::span(leaves).subspan(row == 0 ? 0 : 3, 3),
                                           parts)
                            .finish();
                    std::vector<Leaves> rows(2);
                    for (std::size_t rank = 0; rank < 6; ++rank) {
                      rows[rank / 3].count += leaves[rank].count;
                    }
                    rows[1].first = rows[0].count;
                    std::vector<float> out(part.shape().count);
                    part.all_reduce(between, rows, out.data());
                    constexpr std::size_t kFirst[] = {0, 8, 17};
                    return compare(out, all, kFirst[inside.rank()]);
                  }),
        {.ranks = 6, .ranks_per_host = 6});
  }
}

TEST(TreeOrderCalls, HaveTheBitsOfTheOracleByOptionAndByCall) {
  for (const TreeLayout& layout : tree_layouts()) {
    for (const bool by_call : {true, false}) {
      expect_all_right(on_layout(layout, by_call ? "" : "tree_order", 0,
                                 [by_call](Communicator& communicator) {
                                   const std::string_view name = by_call ? "tree_order" : "";
                                   std::string wrong;
                                   for (const std::size_t count : {1U, 5U, 333U, 5000U}) {
                                     wrong += run_plain_calls<float>(communicator, count, name);
                                     wrong += run_plain_calls<bf16>(communicator, count, name);
                                   }
                                   return wrong;
                                 }),
                       layout);
    }
  }
}

// With the communicator's max_error, this algorithm could round between two hosts.
TEST(TreeOrderCalls, StayExactWhereTheCommunicatorHasAnMaxError) {
  const TreeLayout layout{.ranks = 2, .ranks_per_host = 1};
  expect_all_right(on_layout(layout, "tree_order", 0.01,
                             [](Communicator& communicator) {
                               return run_plain_calls<float>(communicator, 20'000, "");
                             }),
                   layout);
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

// The nodes of a rank's leaves, each added as one sum, in another order.
TEST(TreeSum, TakesNodesInAnyOrder) {
  constexpr std::size_t kCount = 3;
  for (std::size_t leaves = 1; leaves <= 24; ++leaves) {
    for (std::size_t cut = 0; cut <= leaves; ++cut) {
      std::vector<Leaves> nodes = subtrees(leaves, {.first = 0, .count = cut});
      const std::vector<Leaves> upper = subtrees(leaves, {.first = cut, .count = leaves - cut});
      nodes.insert(nodes.begin(), upper.rbegin(), upper.rend());
      TreeSum sum({.count = kCount, .leaves = leaves});
      for (const Leaves& node : nodes) {
        std::vector<float> values(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          values[i] = tree<float>(node.first, node.first + node.count, i);
        }
        sum.add(node, values.data());
      }
      std::vector<float> out(kCount);
      sum.sum(out.data());
      EXPECT_EQ(compare(out, leaves, 0), "") << leaves << " leaves, cut at " << cut;
    }
  }
  EXPECT_EQ(subtrees(8, {.first = 0, .count = 8}), (std::vector<Leaves>{{.first = 0, .count = 8}}));
  EXPECT_EQ(subtrees(8, {.first = 3, .count = 0}), std::vector<Leaves>{});
}

TEST(TreeSum, RefusesSumsThatAreNoNode) {
  TreeSum sum({.count = 1, .leaves = 8});
  const float one = 1;
  EXPECT_EQ(error_of([&] { sum.add({.first = 1, .count = 2}, &one); }),
            "usage: TreeSum: leaves 1 to 3 of 8 are no node of the tree");
  EXPECT_EQ(error_of([&] { sum.add({.first = 3, .count = 0}, &one); }),
            "usage: TreeSum: leaves 3 to 3 of 8 are no node of the tree");
  EXPECT_EQ(error_of([&] { sum.add({.first = 6, .count = 4}, &one); }),
            "usage: TreeSum: leaf 8 is not one of 8 leaves");
  sum.add(5, &one);
  EXPECT_EQ(error_of([&] { sum.add({.first = 4, .count = 4}, &one); }),
            "usage: TreeSum: leaf 5 is added twice");
}

TEST(TreeSum, RefusesLeavesThatDoNotFit) {
  EXPECT_EQ(error_of([] { TreeSum({.leaves = 0}); }),
            "usage: TreeSum: leaf 0 is not one of 0 leaves");
  EXPECT_EQ(error_of([] { TreeSum({.leaves = 4, .first = 5}); }),
            "usage: TreeSum: leaf 5 is not one of 4 leaves");
  TreeSum sum({.count = 1, .leaves = 2});
  const float one = 1;
  sum.add(&one);
  float out = 0;
  EXPECT_EQ(error_of([&] { sum.sum(&out); }), "usage: TreeSum: has leaves 0 to 1 of 2");
  sum.add(&one);
  sum.sum(&out);
  EXPECT_EQ(out, 2);
  EXPECT_EQ(error_of([&] { sum.add(&one); }), "usage: TreeSum: leaf 2 is not one of 2 leaves");
  EXPECT_EQ(error_of([&] { sum.add(1, &one); }), "usage: TreeSum: leaf 1 is added twice");
  const auto said = on_ranks(Ranks::threads, 1, [&](Communicator& communicator) {
    const std::vector<std::size_t> two_ranks = {1, 1};
    const std::vector<std::size_t> too_many = {3};
    return error_of([&] { sum.all_reduce(communicator, two_ranks, &out); }) + "; " +
           error_of([&] { sum.all_reduce(communicator, too_many, &out); });
  });
  const auto twice = on_ranks(Ranks::threads, 2, [&](Communicator& communicator) {
    TreeSum own({.count = 1, .leaves = 2});
    own.add(&one);
    const std::vector<Leaves> both = {{.count = 1}, {.count = 1}};
    const std::vector<std::size_t> parts = {1, 0};
    return error_of([&] { std::move(own).scatter_async(communicator, both, parts); });
  });
  EXPECT_EQ(twice.front(), "usage: TreeSum: the list gives leaf 0 to two ranks");
  const auto far = on_ranks(Ranks::threads, 1, [&](Communicator& communicator) {
    const std::vector<std::size_t> both = {2};
    return error_of([&] { sum.reduce(communicator, both, 1, &out); });
  });
  EXPECT_EQ(far.front(), "usage: TreeSum: rank 1 is not one of 1 ranks");
  EXPECT_EQ(said.front(),
            "usage: TreeSum: got the leaves of 2 ranks, not of 1; usage: TreeSum: rank 0 has "
            "leaves 0 to 2 of 2, and the list says 0 to 3 of 3");
}

}  // namespace
}  // namespace unisono::testing
