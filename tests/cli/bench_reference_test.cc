// The benchmark's reference: it accepts the right result of each collective, which this test
// computes from the inputs alone, and counts each element that differs.
#include "bench/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/sweep.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

constexpr int kRanks = 3;

std::size_t as_size(int value) {
  return static_cast<std::size_t>(value);
}

// The inputs of all ranks as floats, as fill_case() makes them.
std::vector<std::vector<float>> inputs_of(const Case& row, const DataRule& rule) {
  std::vector<std::vector<float>> inputs;
  for (int rank = 0; rank < kRanks; ++rank) {
    const CaseCounts layout = layout_of(row, rank, kRanks);
    std::vector<float> in(layout.in_count + 1);
    fill_case(row, layout, rule, rank, in.data(), nullptr);
    in.pop_back();
    inputs.push_back(in);
  }
  return inputs;
}

std::vector<float> sum_of(const std::vector<std::vector<float>>& inputs) {
  std::vector<float> total(inputs[0].size());
  for (const std::vector<float>& in : inputs) {
    std::transform(in.begin(), in.end(), total.begin(), total.begin(), std::plus<>());
  }
  return total;
}

std::vector<float> joined(const std::vector<std::vector<float>>& parts) {
  std::vector<float> all;
  for (const std::vector<float>& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Sizes of the parts of the whole, as the plain forms and the v-forms cut it.
std::vector<std::size_t> part_sizes(const CaseCounts& layout) {
  return layout.counts.empty() ? std::vector<std::size_t>(kRanks, layout.count) : layout.counts;
}

std::vector<float> part_of(const std::vector<float>& whole, const std::vector<std::size_t>& sizes,
                           int part) {
  std::size_t first = 0;
  for (int i = 0; i < part; ++i) {
    first += sizes[as_size(i)];
  }
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(sizes[as_size(part)])};
}

std::vector<float> right_output(const Case& row, const std::vector<std::vector<float>>& inputs,
                                int rank) {
  const CaseCounts layout = layout_of(row, rank, kRanks);
  if (row.workload.send_recv) {
    return inputs[as_size((rank + kRanks - 1) % kRanks)];
  }
  switch (plain_form(row.workload.collective)) {
    case Collective::broadcast:
      return inputs[as_size(row.root)];
    case Collective::reduce:
    case Collective::all_reduce:
      return sum_of(inputs);
    case Collective::scan:
      return sum_of({inputs.begin(), inputs.begin() + rank + 1});
    case Collective::exclusive_scan:
      return rank == 0 ? std::vector<float>(inputs[0].size())
                       : sum_of({inputs.begin(), inputs.begin() + rank});
    case Collective::scatter:
      return part_of(inputs[as_size(row.root)], part_sizes(layout), rank);
    case Collective::reduce_scatter:
      return part_of(sum_of(inputs), part_sizes(layout), rank);
    case Collective::gather:
    case Collective::all_gather:
      return joined(inputs);
    case Collective::all_to_all: {
      std::vector<std::vector<float>> parts;
      for (int source = 0; source < kRanks; ++source) {
        parts.push_back(
            part_of(inputs[as_size(source)], part_sizes(layout_of(row, source, kRanks)), rank));
      }
      return joined(parts);
    }
    default:
      return {};
  }
}

class Reference : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Reference, AcceptsTheRightResultAndCountsWhatDiffers) {
  for (const BenchWorkload& workload : all_workloads(kRanks)) {
    for (const bool random : {false, true}) {
      const Case row{.workload = workload, .algorithm = {}, .root = 1, .bytes = GetParam()};
      const DataRule rule = data_rule(row, kRanks, 7, random);
      const auto inputs = inputs_of(row, rule);
      for (int rank = 0; rank < kRanks; ++rank) {
        const CaseCounts layout = layout_of(row, rank, kRanks);
        std::vector<float> out = right_output(row, inputs, rank);
        if (layout.out_count == 0) {
          continue;
        }
        ASSERT_EQ(out.size(), layout.out_count) << workload.name();
        EXPECT_EQ(check_case(row, layout, rule, rank, out.data()), 0U)
            << workload.name() << " rank " << rank;
        out.front() += 1;
        out.back() += out.size() > 1 ? 1.0F : 0.0F;
        EXPECT_EQ(check_case(row, layout, rule, rank, out.data()), out.size() > 1 ? 2U : 1U)
            << workload.name() << " rank " << rank;
      }
    }
  }
}

// Fewer than one element per part, not divisible, and large.
INSTANTIATE_TEST_SUITE_P(Sizes, Reference, testing::Values(4, 8, 100, 4096, 40'004));

TEST(Reference, SeesTheResultOfAnotherCase) {
  const Case row{.workload = {.send_recv = false, .collective = Collective::broadcast},
                 .algorithm = {},
                 .bytes = 400};
  const CaseCounts layout = layout_of(row, 1, kRanks);
  std::vector<float> out(layout.out_count);
  fill(data_rule(row, kRanks, 1, false), 0, 0, layout.out_count, out.data());
  EXPECT_EQ(check_case(row, layout, data_rule(row, kRanks, 1, false), 1, out.data()), 0U);
  EXPECT_GT(check_case(row, layout, data_rule(row, kRanks, 2, false), 1, out.data()), 50U);
}

TEST(Reference, SumsStayExactInEveryType) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const Case row{.workload = {.send_recv = false, .collective = Collective::all_reduce},
                   .algorithm = {},
                   .dtype = dtype,
                   .bytes = 64};
    const DataRule rule = data_rule(row, 4, 3, false);
    EXPECT_TRUE(rule.exact) << to_string(dtype);
    EXPECT_GE(rule.mask, 1U) << to_string(dtype);
  }
  const Case narrow{.workload = {.send_recv = false, .collective = Collective::all_reduce},
                    .algorithm = {},
                    .dtype = Dtype::f8e5m2,
                    .bytes = 64};
  EXPECT_FALSE(data_rule(narrow, 64, 3, false).exact);  // 64 ones are beyond e5m2's integers
}

TEST(CaseCounts, UnevenSharesAddUp) {
  for (const std::size_t total : {0ULL, 1ULL, 7ULL, 1000ULL, (1ULL << 40U) + 3}) {
    for (const int parts : {1, 2, 3, 64, 4096}) {
      std::size_t sum = 0;
      for (int part = 0; part < parts; ++part) {
        sum += uneven_share(total, parts, part);
      }
      EXPECT_EQ(sum, total) << parts;
    }
  }
}

TEST(CaseCounts, BusFactorsAreThoseOfNcclTests) {
  const auto factor = [](Collective collective) {
    return bus_factor({.send_recv = false, .collective = collective}, 4);
  };
  EXPECT_DOUBLE_EQ(factor(Collective::all_reduce), 1.5);
  EXPECT_DOUBLE_EQ(factor(Collective::reduce_scatter_v), 0.75);
  EXPECT_DOUBLE_EQ(factor(Collective::broadcast), 1);
}

}  // namespace
}  // namespace unisono::cli
