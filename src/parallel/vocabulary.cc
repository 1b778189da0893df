// A vocabulary sharded over ranks: embedding, cross entropy, sampling.
#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <limits>
#include <string>

#include "base/dtypes.h"
#include "parallel/floats.h"
#include "parallel/refuse.h"

#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono::parallel {
namespace {

void expect(const char* call, const char* name, std::size_t have, std::size_t need) {
  if (have != need) {
    refuse(call,
           std::string("`") + name + "` has " + std::to_string(have) + " elements, not " +
               std::to_string(need),
           "call shard_range() on the vocabulary for the words of a rank");
  }
}

void check_token(const char* call, std::int32_t token, std::size_t vocabulary) {
  if (token < 0 || static_cast<std::size_t>(token) >= vocabulary) {
    refuse(call,
           "token " + std::to_string(token) + " is not in the vocabulary of " +
               std::to_string(vocabulary),
           "tokens are numbered from 0");
  }
}

// Calls body(position of the token, local row of the table) for the tokens whose rows are on this
// rank.
template <typename Body>
void for_each_here(const char* call, const Range& words, std::size_t vocabulary,
                   std::span<const std::int32_t> tokens, const Body& body) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    check_token(call, tokens[i], vocabulary);
    const auto word = static_cast<std::size_t>(tokens[i]);
    if (word >= words.first && word < words.first + words.count) {
      body(i, word - words.first);
    }
  }
}

// Returns the elements [first, first + count).
template <typename Span>
Span part_of(Span all, std::size_t first, std::size_t count) {
  using Byte = std::conditional_t<std::is_same_v<Span, AnySpan>, std::byte, const std::byte>;
  return {static_cast<Byte*>(all.data()) + first * size_of(all.dtype()), count, all.dtype()};
}

// The sum of a token's exponentials over some words, with no exponential above 1, and the logit of
// its target: two integers, which ranks can add in any order.
class LossSums {
 public:
  // Chooses the unit so that a sum over the vocabulary has at most 62 bits.
  LossSums(std::size_t rows, std::size_t vocabulary)
      : words_(2 * rows),
        unit_(std::ldexp(1.0, 62 - static_cast<int>(std::bit_width(vocabulary)))) {}

  void add(std::size_t row, float exponential) {
    if (std::isnan(exponential)) {
      words_[2 * row + 1] += kOneInvalid;
    } else {
      words_[2 * row] += static_cast<std::int64_t>(static_cast<double>(exponential) * unit_ + 0.5);
    }
  }
  void target(std::size_t row, float logit) {
    words_[2 * row + 1] += std::bit_cast<std::uint32_t>(logit);
  }
  void all_reduce(Communicator& axis) { axis.all_reduce(words_, sum); }

  double total(std::size_t row) const {
    return words_[2 * row + 1] >= kOneInvalid ? std::numeric_limits<double>::quiet_NaN()
                                              : static_cast<double>(words_[2 * row]) / unit_;
  }
  float target_logit(std::size_t row) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(words_[2 * row + 1] & 0xFFFFFFFF));
  }

 private:
  static constexpr std::int64_t kOneInvalid = std::int64_t{1} << 32U;
  std::vector<std::int64_t> words_;
  double unit_;
};

// `axis`: nullptr if this rank has all words.
void cross_entropy_over(const char* call, Communicator* axis, std::size_t vocabulary,
                        const Range& words_here, AnySpan logits,
                        std::span<const std::int32_t> targets, float scale,
                        std::span<float> losses) {
  const std::size_t words = words_here.count;
  const std::size_t rows = targets.size();
  expect(call, "logits", logits.size(), rows * words);
  expect(call, "losses", losses.size(), rows);
  expect_float(call, "logits", logits.dtype(), logits.dtype());
  const bool is_wide = logits.dtype() == Dtype::f32;
  std::vector<float> narrow(is_wide ? 0 : words);
  // Returns the logits of a token: in place, or as a copy that the next call overwrites.
  const auto row_of = [&](std::size_t i) {
    const AnySpan row = part_of(logits, i * words, words);
    if (is_wide) {
      return row.as<float>();
    }
    convert(row, narrow);
    return std::span<float>(narrow);
  };
  std::vector<std::size_t> targets_here(rows, words);  // `words`: another rank has the target
  for_each_here(call, words_here, vocabulary, targets,
                [&](std::size_t i, std::size_t word) { targets_here[i] = word; });
  std::vector<float> largest(rows, -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < rows; ++i) {
    for (const float logit : row_of(i)) {
      largest[i] = std::max(largest[i], logit);
    }
  }
  if (axis != nullptr) {
    axis->all_reduce(largest, max);
  }
  LossSums sums(rows, vocabulary);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<float> row = row_of(i);
    if (targets_here[i] != words) {
      sums.target(i, row[targets_here[i]] - largest[i]);
    }
    for (float& logit : row) {
      logit = std::exp(logit - largest[i]);
      sums.add(i, logit);
    }
  }
  if (axis != nullptr) {
    sums.all_reduce(*axis);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    losses[i] =
        static_cast<float>(std::log(sums.total(i)) - static_cast<double>(sums.target_logit(i)));
    const auto factor = static_cast<float>(scale / sums.total(i));
    const std::span<float> row = row_of(i);
    for (float& value : row) {
      value = (is_wide ? value : std::exp(value - largest[i])) * factor;
    }
    if (targets_here[i] != words) {
      row[targets_here[i]] -= scale;
    }
    if (!is_wide) {
      convert(narrow, part_of(logits, i * words, words));
    }
  }
}

bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

}  // namespace

void vocabulary_embedding(const Communicator& axis, std::size_t vocabulary, std::size_t width,
                          ConstAnySpan table, std::span<const std::int32_t> tokens, AnySpan out) {
  constexpr const char* kCall = "vocabulary_embedding";
  expect(kCall, "table", table.size(),
         shard_range(vocabulary, axis.size(), axis.rank()).count * width);
  expect(kCall, "out", out.size(), tokens.size() * width);
  expect_float(kCall, "table", table.dtype(), table.dtype());
  expect_float(kCall, "out", out.dtype(), table.dtype());
  const std::size_t row_bytes = width * size_of(table.dtype());
  const auto* from = static_cast<const std::byte*>(table.data());
  auto* to = static_cast<std::byte*>(out.data());
  std::fill_n(to, tokens.size() * row_bytes, std::byte{});
  for_each_here(kCall, shard_range(vocabulary, axis.size(), axis.rank()), vocabulary, tokens,
                [&](std::size_t i, std::size_t row) {
                  std::copy_n(from + row * row_bytes, row_bytes, to + i * row_bytes);
                });
}

void vocabulary_embedding_backward(const Communicator& axis, std::size_t vocabulary,
                                   std::size_t width, ConstAnySpan out_gradient,
                                   std::span<const std::int32_t> tokens, AnySpan table_gradient) {
  constexpr const char* kCall = "vocabulary_embedding_backward";
  expect(kCall, "table_gradient", table_gradient.size(),
         shard_range(vocabulary, axis.size(), axis.rank()).count * width);
  expect(kCall, "out_gradient", out_gradient.size(), tokens.size() * width);
  expect_float(kCall, "out_gradient", out_gradient.dtype(), out_gradient.dtype());
  expect_float(kCall, "table_gradient", table_gradient.dtype(),
               table_gradient.dtype() == Dtype::f32 ? Dtype::f32 : out_gradient.dtype());
  // Sorts the tokens by row, and keeps their order within a row, so that a narrow row is rounded
  // once.
  struct Here {
    std::size_t row;
    std::size_t token;
    auto operator<=>(const Here&) const = default;
  };
  std::vector<Here> here;
  for_each_here(kCall, shard_range(vocabulary, axis.size(), axis.rank()), vocabulary, tokens,
                [&](std::size_t i, std::size_t row) { here.push_back({row, i}); });
  const bool is_wide = table_gradient.dtype() == Dtype::f32;
  if (!is_wide) {
    std::ranges::sort(here);
  }
  std::vector<float> sums(is_wide ? 0 : width);
  for (auto at = here.begin(); at != here.end();) {
    const AnySpan row = part_of(table_gradient, at->row * width, width);
    const std::span<float> to = is_wide ? row.as<float>() : std::span<float>(sums);
    if (!is_wide) {
      convert(row, sums);
    }
    const std::size_t own = at->row;
    do {
      const ReadFloats more(part_of(out_gradient, at->token * width, width));
      for (std::size_t k = 0; k < width; ++k) {
        to[k] += more.span()[k];
      }
      ++at;
    } while (at != here.end() && at->row == own);
    if (!is_wide) {
      convert(sums, row);
    }
  }
}

void vocabulary_cross_entropy(Communicator& axis, std::size_t vocabulary, AnySpan logits,
                              std::span<const std::int32_t> targets, float scale,
                              std::span<float> losses) {
  cross_entropy_over("vocabulary_cross_entropy", &axis, vocabulary,
                     shard_range(vocabulary, axis.size(), axis.rank()), logits, targets, scale,
                     losses);
}

void cross_entropy(std::size_t vocabulary, AnySpan logits, std::span<const std::int32_t> targets,
                   float scale, std::span<float> losses) {
  cross_entropy_over("cross_entropy", nullptr, vocabulary, {.count = vocabulary}, logits, targets,
                     scale, losses);
}

std::vector<Candidate> top_candidates(Communicator& axis, std::size_t vocabulary,
                                      ConstAnySpan logits, std::size_t count) {
  const Range words = shard_range(vocabulary, axis.size(), axis.rank());
  expect("top_candidates", "logits", logits.size(), words.count);
  expect_float("top_candidates", "logits", logits.dtype(), logits.dtype());
  const ReadFloats floats(logits);
  count = std::min(count, vocabulary);
  const std::size_t kept = std::min(count, words.count);
  std::vector<Candidate> mine;  // a heap with the least likely word in front
  for (std::size_t w = 0; w < words.count && kept > 0; ++w) {
    const Candidate word{.logit = floats.span()[w],
                         .token = static_cast<std::int32_t>(words.first + w)};
    if (mine.size() == kept) {
      if (!likelier(word, mine.front())) {
        continue;
      }
      std::ranges::pop_heap(mine, likelier);
      mine.pop_back();
    }
    mine.push_back(word);
    std::ranges::push_heap(mine, likelier);
  }
  std::ranges::sort_heap(mine, likelier);
  // Ranks with fewer words send some that are less likely than all.
  mine.resize(count, {.logit = -std::numeric_limits<float>::infinity(),
                      .token = std::numeric_limits<std::int32_t>::max()});
  std::vector<Candidate> all(count * static_cast<std::size_t>(axis.size()));
  axis.run({.collective = Collective::all_gather,
            .in = mine.data(),
            .out = all.data(),
            .count = count * sizeof(Candidate)});
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    likelier);
  all.resize(count);
  return all;
}

std::int32_t sample(std::span<const Candidate> candidates, double temperature, double uniform) {
  if (candidates.empty()) {
    refuse("sample", "there are no candidates", "request at least one from top_candidates()");
  }
  if (temperature <= 0) {
    return candidates.front().token;
  }
  std::vector<double> weights;
  double all = 0;
  for (const Candidate& candidate : candidates) {
    weights.push_back(std::exp((candidate.logit - candidates.front().logit) / temperature));
    all += weights.back();
  }
  double left = uniform * all;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) {
      return candidates[i].token;
    }
  }
  return candidates.back().token;
}

}  // namespace unisono::parallel
