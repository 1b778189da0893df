// First and last layer of the model: converts tokens to vectors, and vectors to a loss.
#include <cmath>
#include <unisono/parallel/tensor_parallel.hpp>

#include "sequences.h"

namespace transformer {
namespace {

namespace up = unisono::parallel;

enum : std::size_t { kNorm, kHead };

// Returns the fixed position embedding, sines and cosines of the position (Vaswani et al., 2017).
float position_value(std::size_t position, std::size_t k, std::size_t width) {
  const double rate =
      std::pow(10000.0, -2.0 * static_cast<double>(k / 2) / static_cast<double>(width));
  const double angle = static_cast<double>(position) * rate;
  return static_cast<float>(k % 2 == 0 ? std::sin(angle) : std::cos(angle));
}

}  // namespace

std::vector<float> Embedding::forward(const Unit& unit,
                                      std::span<const std::int32_t> tokens) const {
  const Config& config = local_.config;
  const auto region = local_.region(config.width);
  const up::Range rows = region.outside(groups_.tp);
  std::vector<float> x(rows.count * config.width);
  if (local_.layout.vocabulary) {
    std::vector<float> part(tokens.size() * config.width);
    up::vocabulary_embedding(groups_.tp, config.vocabulary, config.width, unit.weight(0), tokens,
                             part);
    up::leave_region(groups_.tp, region, part, x);
  } else {
    for (std::size_t i = 0; i < rows.count; ++i) {
      const auto token = static_cast<std::size_t>(tokens[rows.first + i]);
      const auto row = unit.weight(0).subspan(token * config.width, config.width);
      std::copy(row.begin(), row.end(), &x[i * config.width]);
    }
  }
  for (std::size_t i = 0; !config.llama && i < rows.count; ++i) {
    const std::size_t place = local_.positions[(rows.first + i) % local_.positions.size()];
    for (std::size_t k = 0; k < config.width; ++k) {
      x[i * config.width + k] += position_value(place, k, config.width);
    }
  }
  return x;
}

void Embedding::backward(const Unit& unit, std::span<const std::int32_t> tokens,
                         std::span<const float> gradient, const LeafReady& leaf_ready) const {
  const Config& config = local_.config;
  const auto region = local_.region(config.width);
  const bool same_bits = local_.layout.same_bits;
  up::Range rows = region.outside(groups_.tp);
  std::vector<float> whole;
  if (local_.layout.vocabulary || same_bits) {
    rows = {.count = region.rows};
    whole.resize(region.rows * config.width);
    up::leave_region_backward(groups_.tp, region, gradient, whole);
    gradient = whole;
  }
  const auto add = [&](std::span<const std::int32_t> some, std::span<const float> slopes) {
    if (local_.layout.vocabulary) {
      up::vocabulary_embedding_backward(groups_.tp, config.vocabulary, config.width, slopes, some,
                                        unit.gradient(0));
      return;
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto token = static_cast<std::size_t>(some[i]);
      for (std::size_t k = 0; k < config.width; ++k) {
        unit.gradient(0)[token * config.width + k] += slopes[i * config.width + k];
      }
    }
  };
  if (!same_bits) {
    add(tokens.subspan(rows.first, rows.count), gradient);
    return;
  }
  const Sequences sequences(groups_, local_);
  const std::vector<std::int32_t> all_tokens = sequences.exchange(tokens);
  const std::vector<float> slopes = sequences.exchange(gradient);
  for (std::size_t i = 0; i < sequences.mine().count; ++i) {
    const std::size_t length = config.length;
    add(std::span(all_tokens).subspan(i * length, length),
        std::span(slopes).subspan(i * length * config.width, length * config.width));
    leaf_ready.ready({.first = leaf_ready.first + sequences.mine().first + i, .count = 1});
  }
}

Head::Result Head::run(const Unit& unit, std::span<const float> x,
                       std::span<const std::int32_t> targets, const LeafReady& leaf_ready) const {
  const Config& config = local_.config;
  const auto region = local_.region(config.width);
  const bool cuts_words = local_.layout.vocabulary;
  const auto scale = static_cast<float>(1.0 / static_cast<double>(config.batch * config.length));
  std::vector<float> normal(x.size());
  rms_norm(x, unit.weight(kNorm), normal);
  std::vector<float> in;
  if (cuts_words) {
    in.resize(local_.rows() * config.width);
    up::enter_region(groups_.tp, region, normal, in);
  } else {
    const up::Range rows = region.outside(groups_.tp);
    targets = targets.subspan(rows.first, rows.count);
    in = normal;
  }
  const std::size_t rows = targets.size();
  std::vector<float> logits(rows * (unit.weight(kHead).size() / config.width));
  const bool same_bits = local_.layout.same_bits;
  linear(in, unit.weight(kHead), logits, rows, same_bits);
  std::vector<float> losses(rows);
  if (cuts_words) {
    up::vocabulary_cross_entropy(groups_.tp, config.vocabulary, logits, targets, scale, losses);
  } else {
    up::cross_entropy(config.vocabulary, logits, targets, scale, losses);
  }
  Result result{.loss = {}, .gradient = std::vector<float>(x.size())};
  result.loss.add(losses);
  if (!cuts_words && local_.layout.sequence) {
    result.loss.all_reduce(groups_.tp);
  }
  std::vector<float> dnormal(x.size());
  if (cuts_words) {
    enter_backward(groups_, local_, {{.w = unit.weight(kHead), .dy = logits}}, config.parts,
                   dnormal);
  } else if (same_bits) {
    sum_parts(rows, {.count = config.parts},
              backward_terms(unit.weight(kHead), logits, rows, config.parts), dnormal);
  } else {
    linear_backward_input(unit.weight(kHead), logits, dnormal, rows, false);
  }
  std::vector<float> dgain;
  rms_norm_backward(x, unit.weight(kNorm), dnormal, result.gradient,
                    gain_gradient(local_, unit.gradient(kNorm), dgain, x.size()));
  if (same_bits && !cuts_words) {
    in = all_rows(groups_, local_, in, config.width);
    logits = all_rows(groups_, local_, logits, config.vocabulary);
  }
  if (same_bits) {
    add_gradients(groups_, local_, {{.x = in, .dy = logits, .gradient = unit.gradient(kHead)}},
                  {{.rows = dgain, .gradient = unit.gradient(kNorm)}}, leaf_ready);
  } else {
    linear_backward_weight(in, logits, unit.gradient(kHead), rows);
  }
  return result;
}

}  // namespace transformer
