// The ends of the model: tokens become vectors, and vectors a loss.
#include <array>
#include <cmath>

#include "compute.h"
#include "model.h"

namespace transformer {
namespace {

namespace up = unisono::parallel;

enum : std::size_t { kNorm, kHead };

// Vaswani et al., 2017: sines and cosines of the place, which no weight is for.
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
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::size_t place = local_.positions[(rows.first + i) % local_.positions.size()];
    for (std::size_t k = 0; k < config.width; ++k) {
      x[i * config.width + k] += position_value(place, k, config.width);
    }
  }
  return x;
}

void Embedding::backward(const Unit& unit, std::span<const std::int32_t> tokens,
                         std::span<const float> gradient) const {
  const Config& config = local_.config;
  const auto region = local_.region(config.width);
  if (local_.layout.vocabulary) {
    std::vector<float> whole(tokens.size() * config.width);
    up::leave_region_backward(groups_.tp, region, gradient, whole);
    up::vocabulary_embedding_backward(groups_.tp, config.vocabulary, config.width, whole, tokens,
                                      unit.gradient(0));
    return;
  }
  const up::Range rows = region.outside(groups_.tp);
  for (std::size_t i = 0; i < rows.count; ++i) {
    const auto token = static_cast<std::size_t>(tokens[rows.first + i]);
    for (std::size_t k = 0; k < config.width; ++k) {
      unit.gradient(0)[token * config.width + k] += gradient[i * config.width + k];
    }
  }
}

Head::Result Head::run(const Unit& unit, std::span<const float> x,
                       std::span<const std::int32_t> targets) const {
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
  linear(in, unit.weight(kHead), logits, rows);
  std::vector<float> losses(rows);
  if (cuts_words) {
    up::vocabulary_cross_entropy(groups_.tp, config.vocabulary, logits, targets, scale, losses);
  } else {
    cross_entropy(logits, targets, scale, losses);
  }
  std::array<double, 1> loss = {0};
  for (const float one : losses) {
    loss[0] += one;
  }
  if (!cuts_words && local_.layout.sequence) {
    groups_.tp.all_reduce(loss, unisono::sum);
  }
  std::vector<float> din(in.size());
  linear_backward_input(unit.weight(kHead), logits, din, rows, false);
  linear_backward_weight(in, logits, unit.gradient(kHead), rows);
  std::vector<float> dnormal(x.size());
  if (cuts_words) {
    up::enter_region_backward(groups_.tp, region, din, dnormal);
  } else {
    dnormal = din;
  }
  Result result{.loss = loss[0], .gradient = std::vector<float>(x.size())};
  rms_norm_backward(x, unit.weight(kNorm), dnormal, result.gradient, unit.gradient(kNorm));
  return result;
}

}  // namespace transformer
