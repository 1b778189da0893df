// Random exchanges, with expected results computed by one process that holds all tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "unisono/parallel/experts.hpp"

namespace unisono::experts::testing {

// Tokens of one world. Every rank has them all, but only the oracle may use other ranks' tokens.
struct Shape {
  ExpertExchangeOptions options;
  std::vector<std::vector<std::int32_t>> chosen;  // by rank
  std::size_t hidden = 1;
  bool registered = false;

  std::size_t tokens(int rank) const {
    return chosen[static_cast<std::size_t>(rank)].size() / static_cast<std::size_t>(options.k);
  }
};

// Returns small integers, whose products and sums are exact.
inline float value_of(int rank, std::size_t token, std::size_t i) {
  return static_cast<float>((rank * 31 + static_cast<int>(token) * 7 + static_cast<int>(i)) % 17 -
                            8);
}
inline float weight_of(int rank, std::size_t place) {
  return static_cast<float>((rank + static_cast<int>(place) * 3) % 5) - 2.0F;
}
inline float output_of(float input, int expert) {
  return input + static_cast<float>(expert);
}

inline Shape draw(std::mt19937& random, int ranks) {
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  Shape shape;
  shape.options.experts = 1 + below(9);
  shape.options.k =
      1 + below(below(3) == 0 ? shape.options.experts : std::min(shape.options.experts, 4));
  shape.options.layout = static_cast<ExpertLayout>(below(3));
  shape.options.alignment = below(2) == 0 ? 1 : 1 + below(5);
  shape.options.capacity = below(4) == 0 ? below(6) : -1;
  shape.hidden = static_cast<std::size_t>(below(3) == 0 ? 1 + below(200) : 1 + below(9));
  shape.registered = below(2) == 0;
  if (below(3) == 0) {  // random placement, with replicas
    shape.options.experts_of_rank.resize(static_cast<std::size_t>(ranks));
    for (int expert = 0; expert < shape.options.experts; ++expert) {
      std::set<int> held;
      for (int copy = 0; copy <= below(2); ++copy) {
        held.insert(below(ranks));
      }
      for (const int rank : held) {
        shape.options.experts_of_rank[static_cast<std::size_t>(rank)].push_back(expert);
      }
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const int tokens = below(4) == 0 ? 0 : below(9);
    auto& chosen = shape.chosen.emplace_back();
    for (int token = 0; token < tokens; ++token) {
      std::vector<std::int32_t> all(static_cast<std::size_t>(shape.options.experts));
      std::iota(all.begin(), all.end(), 0);
      std::shuffle(all.begin(), all.end(), random);
      for (int slot = 0; slot < shape.options.k; ++slot) {
        // A slot may have no expert, or an expert that the token already has.
        const int other = below(16) == 0 ? 0 : slot;
        chosen.push_back(below(8) == 0 ? -1 : all[static_cast<std::size_t>(other)]);
      }
    }
  }
  return shape;
}

// Returns the expert that serves each choice, or -1 if the choice is absent or dropped.
inline std::vector<std::vector<std::int32_t>> served(const Shape& shape) {
  std::map<std::int32_t, std::int64_t> taken;
  auto result = shape.chosen;
  for (auto& rank : result) {
    for (std::int32_t& expert : rank) {
      if (expert >= 0 && shape.options.capacity >= 0 && taken[expert]++ >= shape.options.capacity) {
        expert = -1;
      }
    }
  }
  return result;
}

inline std::vector<float> expected_sums(const Shape& shape, int rank, bool weighted) {
  const auto k = static_cast<std::size_t>(shape.options.k);
  const auto experts = served(shape)[static_cast<std::size_t>(rank)];
  std::vector<float> sums(shape.tokens(rank) * shape.hidden, 0.0F);
  for (std::size_t place = 0; place < experts.size(); ++place) {
    for (std::size_t i = 0; i < shape.hidden && experts[place] >= 0; ++i) {
      sums[place / k * shape.hidden + i] += (weighted ? weight_of(rank, place) : 1.0F) *
                                            output_of(value_of(rank, place / k, i), experts[place]);
    }
  }
  return sums;
}

}  // namespace unisono::experts::testing
