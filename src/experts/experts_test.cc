// Exchanges of random shapes against one process that holds all experts: which rows arrive where,
// in which order, and what comes back, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <random>
#include <tuple>

#include "unisono/parallel/experts.hpp"

namespace unisono::parallel {
namespace {

struct Case {
  ExchangeOptions options;
  std::vector<std::vector<std::int32_t>> choices;  // by rank
  std::vector<std::vector<float>> weights;
  std::size_t hidden = 0;
};

using Random = std::mt19937;

int draw(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

Case draw_case(std::uint32_t seed, int ranks) {
  Random random(seed);
  Case drawn;
  drawn.options = {.experts = draw(random, 1, 9),
                   .k = 1,
                   .places = {},
                   .layout = static_cast<ExpertLayout>(draw(random, 0, 2)),
                   .alignment = draw(random, 1, 4),
                   .capacity = draw(random, 0, 3) == 0 ? draw(random, 1, 4) : 0};
  drawn.options.k = draw(random, 1, drawn.options.experts);
  drawn.hidden = static_cast<std::size_t>(draw(random, 0, 7) == 0 ? draw(random, 60, 140)
                                                                  : draw(random, 0, 20));
  if (draw(random, 0, 1) == 0) {
    for (int expert = 0; expert < drawn.options.experts; ++expert) {
      drawn.options.places.push_back(draw(random, 0, ranks - 1));
    }
  }
  const bool one_expert = draw(random, 0, 9) == 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int tokens = draw(random, 0, 3) == 0 ? 0 : draw(random, 1, 12);
    std::vector<std::int32_t> choices(static_cast<std::size_t>(tokens * drawn.options.k));
    std::vector<float> weights(choices.size());
    for (std::size_t i = 0; i < choices.size(); ++i) {
      choices[i] = one_expert ? 0 : draw(random, -1, drawn.options.experts - 1);
      weights[i] = static_cast<float>(draw(random, -1000, 1000)) / 700.0F;
    }
    drawn.choices.push_back(choices);
    drawn.weights.push_back(weights);
  }
  return drawn;
}

int place_of(const Case& drawn, int expert, int ranks) {
  if (!drawn.options.places.empty()) {
    return drawn.options.places[static_cast<std::size_t>(expert)];
  }
  for (int rank = 0, end = 0;; ++rank) {
    end += drawn.options.experts / ranks + (rank < drawn.options.experts % ranks ? 1 : 0);
    if (expert < end) {
      return rank;
    }
  }
}

float element(int rank, std::int64_t token, std::size_t i) {
  return static_cast<float>(rank * 1000) + static_cast<float>(token) +
         static_cast<float>(i) / 64.0F + 1.0F;
}

// What an expert makes of an element.
float expert_of(int expert, float value) {
  return value * (1.0F + static_cast<float>(expert) / 7.0F) - 3.0F;
}

// (expert, rank, token, choice) of all choices that are not dropped.
using Choice = std::tuple<int, int, std::int64_t, int>;

std::vector<Choice> kept(const Case& drawn) {
  std::vector<Choice> all;
  std::vector<int> taken(static_cast<std::size_t>(drawn.options.experts), 0);
  for (std::size_t rank = 0; rank < drawn.choices.size(); ++rank) {
    for (std::size_t i = 0; i < drawn.choices[rank].size(); ++i) {
      const int expert = drawn.choices[rank][i];
      if (expert >= 0 && (drawn.options.capacity == 0 ||
                          taken[static_cast<std::size_t>(expert)] < drawn.options.capacity)) {
        ++taken[static_cast<std::size_t>(expert)];
        const auto k = static_cast<std::size_t>(drawn.options.k);
        all.emplace_back(expert, static_cast<int>(rank), static_cast<std::int64_t>(i / k),
                         static_cast<int>(i % k));
      }
    }
  }
  return all;
}

struct Row {
  RowSource source;
  std::vector<int> experts;  // whose sum stands in this row; none: padding
};

std::vector<Row> expected_rows(const Case& drawn, int rank, int ranks) {
  std::vector<Choice> all = kept(drawn);
  std::erase_if(all, [&](const Choice& choice) {
    return place_of(drawn, std::get<0>(choice), ranks) != rank;
  });
  const ExpertLayout layout = drawn.options.layout;
  if (layout == ExpertLayout::expert_major) {
    std::sort(all.begin(), all.end());
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [expert, from, token, choice] = all[i];
    const bool again = layout == ExpertLayout::rank_major && !rows.empty() &&
                       rows.back().source.rank == from && rows.back().source.token == token;
    if (again) {
      rows.back().experts.push_back(expert);
      continue;
    }
    rows.push_back({.source = {.rank = from,
                               .choice = layout == ExpertLayout::rank_major ? -1 : choice,
                               .token = token},
                    .experts = {expert}});
    const bool last = i + 1 == all.size() || std::get<0>(all[i + 1]) != expert;
    while (layout == ExpertLayout::expert_major && last &&
           rows.size() % static_cast<std::size_t>(drawn.options.alignment) != 0) {
      rows.push_back({});
    }
  }
  return rows;
}

void expect_source(const RowSource& got, const RowSource& wanted) {
  EXPECT_EQ(got.rank, wanted.rank);
  EXPECT_EQ(got.token, wanted.token);
  EXPECT_EQ(got.choice, wanted.choice);
}

std::vector<float> expected_sum(const Case& drawn, int rank, std::size_t i, float add) {
  const auto k = static_cast<std::size_t>(drawn.options.k);
  const auto ranks = static_cast<int>(drawn.choices.size());
  const bool by_rank = drawn.options.layout == ExpertLayout::rank_major;
  const auto& weights = drawn.weights[static_cast<std::size_t>(rank)];
  std::vector<float> sums(weights.size() / k, 0.0F);
  std::vector<std::vector<std::pair<int, float>>> parts(sums.size());  // rank_major: by rank
  for (const auto& [expert, from, token, choice] : kept(drawn)) {
    if (from != rank) {
      continue;
    }
    const auto t = static_cast<std::size_t>(token);
    const float value = expert_of(expert, element(from, token, i));
    if (!by_rank) {
      sums[t] += weights[t * k + static_cast<std::size_t>(choice)] * value;
      continue;
    }
    const int place = place_of(drawn, expert, ranks);
    const auto part = std::find_if(parts[t].begin(), parts[t].end(),
                                   [place](const auto& one) { return one.first == place; });
    if (part == parts[t].end()) {
      parts[t].emplace_back(place, value);
    } else {
      part->second += value;
    }
  }
  for (std::size_t t = 0; t < sums.size(); ++t) {
    for (const auto& [place, value] : parts[t]) {
      sums[t] += value;
    }
    sums[t] += add;
  }
  return sums;
}

void check_case(Communicator& communicator, const Case& drawn, std::uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", rank " + std::to_string(communicator.rank()));
  const auto me = static_cast<std::size_t>(communicator.rank());
  const std::size_t hidden = drawn.hidden;
  Exchange exchange(communicator, drawn.options);
  const Routing routing = exchange.route(std::span<const std::int32_t>(drawn.choices[me]));
  const auto tokens = static_cast<std::size_t>(routing.tokens());
  const auto count = static_cast<std::size_t>(routing.rows());
  const std::vector<Row> wanted = expected_rows(drawn, communicator.rank(), communicator.size());
  ASSERT_EQ(count, wanted.size());
  std::vector<float> in(tokens * hidden);
  std::vector<std::int64_t> names(tokens);
  for (std::size_t t = 0; t < tokens; ++t) {
    names[t] = static_cast<std::int64_t>(me * 1000 + t + 1);
    for (std::size_t i = 0; i < hidden; ++i) {
      in[t * hidden + i] = element(communicator.rank(), static_cast<std::int64_t>(t), i);
    }
  }
  std::vector<float> rows(count * hidden, -1.0F);
  std::vector<std::int64_t> row_names(count, -1);
  const std::vector<Payload> payloads = {
      {.in = in.data(), .out = rows.data(), .row_bytes = hidden * sizeof(float)},
      {.in = names.data(), .out = row_names.data(), .row_bytes = sizeof(std::int64_t)}};
  exchange.dispatch(routing, payloads);
  for (std::size_t row = 0; row < count; ++row) {
    const RowSource& source = wanted[row].source;
    expect_source(routing.sources()[row], source);
    EXPECT_EQ(row_names[row], source.rank < 0 ? 0 : source.rank * 1000 + source.token + 1);
    for (std::size_t i = 0; i < hidden; ++i) {
      float& value = rows[row * hidden + i];
      ASSERT_EQ(value, source.rank < 0 ? 0.0F : element(source.rank, source.token, i));
      float sum = 0.0F;
      for (std::size_t e = 0; e < wanted[row].experts.size(); ++e) {
        const float part = expert_of(wanted[row].experts[e], value);
        sum = e == 0 ? part : sum + part;
      }
      value = sum;
    }
  }
  const bool by_rank = drawn.options.layout == ExpertLayout::rank_major;
  std::vector<float> out(tokens * hidden, -1.0F);
  exchange.combine(routing, {.in = rows.data(),
                             .out = out.data(),
                             .hidden = hidden,
                             .dtype = Dtype::f32,
                             .weights = by_rank ? std::span<const float>{}
                                                : std::span<const float>(drawn.weights[me]),
                             .add = in.data()});
  for (std::size_t i = 0; i < hidden; ++i) {
    const std::vector<float> sums = expected_sum(drawn, communicator.rank(), i, 0.0F);
    for (std::size_t t = 0; t < tokens; ++t) {
      const float wanted_sum = sums[t] + in[t * hidden + i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[t * hidden + i]),
                std::bit_cast<std::uint32_t>(wanted_sum));
    }
  }
  std::int64_t all = 0;
  for (const std::int64_t load : routing.loads()) {
    all += load;
  }
  EXPECT_EQ(static_cast<std::size_t>(all), kept(drawn).size());
}

TEST(Experts, RandomShapesEqualOneProcess) {
  const char* asked = std::getenv("UNISONO_TEST_EXPERT_CASES");
  const int cases = asked == nullptr ? 10000 : std::atoi(asked);
  for (int ranks = 1; ranks <= 5; ++ranks) {
    run_threads(ranks, [&](Communicator& communicator) {
      for (int i = 0; i < cases / 5 && !testing::Test::HasFailure(); ++i) {
        const auto seed = static_cast<std::uint32_t>(ranks * 10000000 + i);
        check_case(communicator, draw_case(seed, ranks), seed);
      }
    });
  }
}

// Without weights, combine adds what dispatch copied: <dispatch(x), y> = <x, combine(y)>.
TEST(Experts, CombineIsTheTransposeOfDispatch) {
  run_threads(3, [](Communicator& communicator) {
    Exchange exchange(communicator, {.experts = 6, .k = 2, .alignment = 4});
    const std::vector<std::int64_t> choices = {0, 5, 3, -1, 2, communicator.rank()};
    const Routing routing = exchange.route(std::span<const std::int64_t>(choices));
    const std::vector<float> x = {1.0F, 2.0F, static_cast<float>(4 + communicator.rank())};
    const auto rows = static_cast<std::size_t>(routing.rows());
    std::vector<float> moved(rows);
    const Payload payload{.in = x.data(), .out = moved.data(), .row_bytes = sizeof(float)};
    std::vector<double> both = {0.0, 0.0};
    std::vector<float> y(rows);
    std::vector<float> back(x.size());
    for (int again = 0; again < 2; ++again) {
      exchange.dispatch(routing, std::span(&payload, 1));
    }
    for (std::size_t row = 0; row < rows; ++row) {
      y[row] = static_cast<float>(row + 1);
      both[0] += static_cast<double>(moved[row]) * static_cast<double>(y[row]);
    }
    exchange.combine(routing,
                     {.in = y.data(), .out = back.data(), .hidden = 1, .dtype = Dtype::f32});
    for (std::size_t t = 0; t < x.size(); ++t) {
      both[1] += static_cast<double>(x[t]) * static_cast<double>(back[t]);
    }
    communicator.all_reduce(both, sum);
    EXPECT_EQ(both[0], both[1]);
    EXPECT_GT(both[0], 0.0);
  });
}

TEST(Experts, NarrowRowsAreRoundedOnce) {
  run_threads(2, [](Communicator& communicator) {
    Exchange exchange(communicator, {.experts = 2, .k = 2});
    const std::vector<std::int32_t> choices = {1, 0};
    const std::vector<float> weights = {1.0F, 0.00390625F};
    const Routing routing = exchange.route(std::span<const std::int32_t>(choices));
    ASSERT_EQ(routing.rows(), 2);
    // 1 + 2^-8 is half way between two bf16, and 2^-9 more decides: two roundings would lose it.
    const std::vector<bf16> narrow = {to_bf16(1.0F), to_bf16(1.0F)};
    const bf16 add = to_bf16(0.001953125F);
    bf16 out;
    exchange.combine(
        routing, {.in = narrow.data(), .out = &out, .hidden = 1, .weights = weights, .add = &add});
    EXPECT_EQ(to_float(out), 1.0078125F);
    const std::vector<f16> halves = {to_f16(1.5F), to_f16(1.5F)};
    f16 half;
    exchange.combine(routing,
                     {.in = halves.data(), .out = &half, .hidden = 1, .dtype = Dtype::f16});
    EXPECT_EQ(to_float(half), 3.0F);
  });
}

}  // namespace
}  // namespace unisono::parallel
