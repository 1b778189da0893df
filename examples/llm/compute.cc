#include "compute.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "matrix.h"

namespace llm {
namespace {

namespace up = unisono::parallel;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Applies softmax over the keys visible to a query. Returns the log-sum-exp.
float softmax(std::span<float> scores, std::size_t query, std::span<const std::size_t> keys,
              std::size_t window) {
  float most = kMinusInfinity;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (keys[j] > query || (window != 0 && keys[j] + window <= query)) {
      scores[j] = kMinusInfinity;
    }
    most = std::max(most, scores[j]);
  }
  if (most == kMinusInfinity) {
    std::ranges::fill(scores, 0.0F);
    return kMinusInfinity;
  }
  float total = 0;
  for (float& score : scores) {
    score = std::exp(score - most);
    total += score;
  }
  for (float& score : scores) {
    score /= total;
  }
  return most + std::log(total);
}

float norm_scale(std::span<const float> row, float epsilon) {
  double squares = 0;
  for (const float value : row) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return static_cast<float>(
      1.0 / std::sqrt(squares / static_cast<double>(row.size()) + static_cast<double>(epsilon)));
}

}  // namespace

void rms_norm(std::span<const float> x, std::span<const float> gain, float epsilon,
              std::span<float> y) {
  const std::size_t width = gain.size();
  for (std::size_t row = 0; row < x.size(); row += width) {
    const float scale = norm_scale(x.subspan(row, width), epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      y[row + i] = x[row + i] * scale * gain[i];
    }
  }
}

void add_and_norm(std::span<const float> added, std::span<float> x, std::span<const float> gain,
                  float epsilon, std::span<float> y) {
  const std::size_t width = gain.size();
  for (std::size_t row = 0; row < x.size(); row += width) {
    for (std::size_t i = row; i < row + width; ++i) {
      x[i] += added[i];
    }
    rms_norm(x.subspan(row, width), gain, epsilon, y.subspan(row, width));
  }
}

void layer_norm(std::span<float> x, std::span<const float> gain, std::span<const float> bias,
                float epsilon) {
  const auto width = static_cast<double>(gain.size());
  for (; !x.empty(); x = x.subspan(gain.size())) {
    const std::span<float> row = x.first(gain.size());
    double sum = 0;
    for (const float value : row) {
      sum += static_cast<double>(value);
    }
    const double mean = sum / width;
    double squares = 0;
    for (const float value : row) {
      squares += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
    }
    const double scale = 1 / std::sqrt(squares / width + static_cast<double>(epsilon));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>((static_cast<double>(row[i]) - mean) * scale) * gain[i] + bias[i];
    }
  }
}

void add_bias(std::span<const float> bias, std::span<float> x) {
  for (; !x.empty(); x = x.subspan(bias.size())) {
    for (std::size_t i = 0; i < bias.size(); ++i) {
      x[i] += bias[i];
    }
  }
}

void gelu(std::span<float> x) {
  constexpr float kRootHalf = 0.7071067812F;
  for (float& value : x) {
    value *= 0.5F * (1 + std::erf(value * kRootHalf));
  }
}

void gated(std::span<float> gate, std::span<const float> up, bool is_gelu) {
  constexpr float kRoot = 0.7978845608F;  // sqrt(2 / pi)
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const float g = gate[i];
    const float active = is_gelu ? 0.5F * g * (1 + std::tanh(kRoot * (g + 0.044715F * g * g * g)))
                                 : g / (1 + std::exp(-g));
    gate[i] = active * up[i];
  }
}

Turns turns_of(const Rope& rope, std::span<const std::size_t> positions) {
  const std::size_t half = rope.dim / 2;
  Turns turns{.dim = rope.dim, .halves = rope.halves, .cosines = {}, .sines = {}};
  for (const std::size_t position : positions) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) *
                           std::pow(static_cast<double>(rope.base),
                                    -2.0 * static_cast<double>(i) / static_cast<double>(rope.dim));
      turns.cosines.push_back(static_cast<float>(std::cos(angle)));
      turns.sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return turns;
}

void rotate(const Turns& turns, std::span<float> x) {
  const std::size_t half = turns.dim / 2;
  if (turns.cosines.empty()) {
    return;
  }
  const std::size_t row = x.size() / (turns.cosines.size() / half);
  for (std::size_t head = 0; head < x.size(); head += turns.dim) {
    const std::size_t position = head / row * half;
    for (std::size_t i = 0; i < half; ++i) {
      const float c = turns.cosines[position + i];
      const float s = turns.sines[position + i];
      float& a = x[head + (turns.halves ? i : 2 * i)];
      float& b = x[head + (turns.halves ? i + half : 2 * i + 1)];
      const float turned = a * c - b * s;
      b = a * s + b * c;
      a = turned;
    }
  }
}

up::AttentionKernel attention_kernel(std::size_t window, bool in_order) {
  const auto forward = [=](const up::AttentionBlock& block, float* out, float* log_sum) {
    const up::AttentionShape& shape = block.shape;
    const float* query = block.query.as<float>().data();
    const float* key = block.key.as<float>().data();
    const float* value = block.value.as<float>().data();
    const std::size_t queries = block.query_positions.size();
    const std::size_t keys = block.key_positions.size();
    const std::size_t row = shape.heads * shape.dim;
    const std::size_t key_row = shape.key_value_heads * shape.dim;
    std::fill_n(out, queries * row, 0.0F);
    std::fill_n(log_sum, queries * shape.heads, kMinusInfinity);
    if (queries == 0 || keys == 0) {
      return;
    }
    std::vector<float> scores(queries * keys);
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape.dim));
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::size_t shared = shape.key_value_of(head);
      multiply({.rows = queries,
                .columns = keys,
                .inner = shape.dim,
                .scale = scale,
                .is_turned = true,
                .in_order = in_order},
               {query + head * shape.dim, row}, {key + shared * shape.dim, key_row}, scores.data(),
               keys);
      for (std::size_t q = 0; q < queries; ++q) {
        log_sum[q * shape.heads + head] = softmax(
            {&scores[q * keys], keys}, block.query_positions[q], block.key_positions, window);
      }
      multiply({.rows = queries, .columns = shape.dim, .inner = keys, .in_order = in_order},
               {scores.data(), keys}, {value + shared * shape.dim, key_row}, out + head * shape.dim,
               row);
    }
  };
  return {.forward = forward};
}

}  // namespace llm
