#include "compute.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace llm {
namespace {

namespace up = unisono::parallel;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

blasint lead(std::size_t columns) {
  return static_cast<blasint>(std::max<std::size_t>(columns, 1));
}

// Softmax over the keys that a query sees; gives the log-sum-exp.
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

}  // namespace

void linear(std::span<const float> x, std::span<const float> w, std::span<float> y,
            std::size_t rows) {
  if (rows == 0 || y.empty()) {
    return;
  }
  const std::size_t outputs = y.size() / rows;
  const std::size_t inputs = w.size() / outputs;
  if (inputs == 0) {
    std::ranges::fill(y, 0.0F);
  } else if (rows == 1) {
    cblas_sgemv(CblasRowMajor, CblasNoTrans, lead(outputs), lead(inputs), 1.0F, w.data(),
                lead(inputs), x.data(), 1, 0.0F, y.data(), 1);
  } else {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, lead(rows), lead(outputs), lead(inputs),
                1.0F, x.data(), lead(inputs), w.data(), lead(inputs), 0.0F, y.data(),
                lead(outputs));
  }
}

void rms_norm(std::span<const float> x, std::span<const float> gain, float epsilon,
              std::span<float> y) {
  const std::size_t width = gain.size();
  for (std::size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) {
      squares += static_cast<double>(x[row + i]) * static_cast<double>(x[row + i]);
    }
    const auto scale = static_cast<float>(
        1.0 / std::sqrt(squares / static_cast<double>(width) + static_cast<double>(epsilon)));
    for (std::size_t i = 0; i < width; ++i) {
      y[row + i] = x[row + i] * scale * gain[i];
    }
  }
}

void gated(std::span<float> gate, std::span<const float> up, bool is_gelu) {
  constexpr float kRoot = 0.7978845608F;  // of 2 / pi
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const float g = gate[i];
    const float active = is_gelu ? 0.5F * g * (1 + std::tanh(kRoot * (g + 0.044715F * g * g * g)))
                                 : g / (1 + std::exp(-g));
    gate[i] = active * up[i];
  }
}

void rotate(const Rope& rope, std::span<const std::size_t> positions, std::span<float> x) {
  if (positions.empty()) {
    return;
  }
  const std::size_t half = rope.dim / 2;
  const std::size_t row = x.size() / positions.size();
  for (std::size_t r = 0; r < positions.size(); ++r) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(positions[r]) *
                           std::pow(static_cast<double>(rope.base),
                                    -2.0 * static_cast<double>(i) / static_cast<double>(rope.dim));
      const auto c = static_cast<float>(std::cos(angle));
      const auto s = static_cast<float>(std::sin(angle));
      for (std::size_t head = 0; head < row; head += rope.dim) {
        float& a = x[r * row + head + (rope.halves ? i : 2 * i)];
        float& b = x[r * row + head + (rope.halves ? i + half : 2 * i + 1)];
        const float turned = a * c - b * s;
        b = a * s + b * c;
        a = turned;
      }
    }
  }
}

up::AttentionKernel attention_kernel(const up::HeadShare& share, std::size_t heads_a_key,
                                     std::size_t window) {
  const auto forward = [=](const up::AttentionBlock& block, float* out, float* log_sum) {
    const up::AttentionShape& shape = block.shape;
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
      const std::size_t shared = (share.query.first + head) / heads_a_key - share.key_value.first;
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, lead(queries), lead(keys),
                  lead(shape.dim), scale, block.query + head * shape.dim, lead(row),
                  block.key + shared * shape.dim, lead(key_row), 0.0F, scores.data(), lead(keys));
      for (std::size_t q = 0; q < queries; ++q) {
        log_sum[q * shape.heads + head] = softmax(
            {&scores[q * keys], keys}, block.query_positions[q], block.key_positions, window);
      }
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, lead(queries), lead(shape.dim),
                  lead(keys), 1.0F, scores.data(), lead(keys), block.value + shared * shape.dim,
                  lead(key_row), 0.0F, out + head * shape.dim, lead(row));
    }
  };
  return {.forward = forward};
}

}  // namespace llm
