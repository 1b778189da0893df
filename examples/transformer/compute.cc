#include "compute.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "in_order/product.h"

#ifdef TRANSFORMER_OPENBLAS
#include <cblas.h>
#endif

namespace transformer {
namespace {

namespace up = unisono::parallel;

constexpr float kNormEpsilon = 1e-5F;

void multiply_in_order(const Product& p) {
  const std::array<in_order::Term, 1> terms = {
      {{.a = p.transpose_a ? in_order::View{p.a, 1, p.m} : in_order::View{p.a, p.k, 1},
        .b = p.transpose_b ? in_order::View{p.b, 1, p.k} : in_order::View{p.b, p.n, 1},
        .depth = p.k}}};
  in_order::multiply(in_order::Product{
      .rows = p.m, .columns = p.n, .terms = terms, .c = p.c, .c_step = p.n, .add = p.add});
}

}  // namespace

#ifdef TRANSFORMER_OPENBLAS

void multiply(const Product& p) {
  // Uses one thread per rank, because the ranks provide the parallelism.
  static const bool once = (openblas_set_num_threads(1), true);
  static_cast<void>(once);
  if (p.m == 0 || p.n == 0) {
    return;
  }
  if (p.in_order) {
    multiply_in_order(p);
    return;
  }
  const auto lead = [](bool is_turned, std::size_t rows, std::size_t columns) {
    return static_cast<blasint>(std::max<std::size_t>(is_turned ? rows : columns, 1));
  };
  cblas_sgemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
              p.transpose_b ? CblasTrans : CblasNoTrans, static_cast<blasint>(p.m),
              static_cast<blasint>(p.n), static_cast<blasint>(p.k), 1.0F, p.a,
              lead(p.transpose_a, p.m, p.k), p.b, lead(p.transpose_b, p.k, p.n),
              p.add ? 1.0F : 0.0F, p.c, static_cast<blasint>(p.n));
}

const char* product_library() {
  return "OpenBLAS";
}

#else

void multiply(const Product& p) {
  if (p.in_order) {
    multiply_in_order(p);
    return;
  }
  for (std::size_t i = 0; i < p.m; ++i) {
    float* row = p.c + i * p.n;
    if (!p.add) {
      std::fill_n(row, p.n, 0.0F);
    }
    for (std::size_t k = 0; k < p.k; ++k) {
      const float a = p.transpose_a ? p.a[k * p.m + i] : p.a[i * p.k + k];
      for (std::size_t j = 0; j < p.n; ++j) {
        row[j] += a * (p.transpose_b ? p.b[j * p.k + k] : p.b[k * p.n + j]);
      }
    }
  }
}

const char* product_library() {
  return "plain loops";
}

#endif

void linear(std::span<const float> x, std::span<const float> w, std::span<float> y,
            std::size_t rows, bool in_order) {
  if (rows == 0) {
    return;
  }
  const std::size_t inputs = x.size() / rows;
  multiply({.m = rows,
            .n = w.size() / inputs,
            .k = inputs,
            .a = x.data(),
            .b = w.data(),
            .c = y.data(),
            .transpose_b = true,
            .in_order = in_order});
}

void linear_backward_input(std::span<const float> w, std::span<const float> dy, std::span<float> dx,
                           std::size_t rows, bool add_dx, bool in_order) {
  if (rows == 0) {
    return;
  }
  multiply({.m = rows,
            .n = dx.size() / rows,
            .k = dy.size() / rows,
            .a = dy.data(),
            .b = w.data(),
            .c = dx.data(),
            .add = add_dx,
            .in_order = in_order});
}

void linear_backward_weight(std::span<const float> x, std::span<const float> dy,
                            std::span<float> dw, std::size_t rows, bool in_order) {
  if (rows == 0) {
    return;
  }
  multiply({.m = dy.size() / rows,
            .n = x.size() / rows,
            .k = rows,
            .a = dy.data(),
            .b = x.data(),
            .c = dw.data(),
            .transpose_a = true,
            .add = true,
            .in_order = in_order});
}

void rms_norm(std::span<const float> x, std::span<const float> gain, std::span<float> y) {
  const std::size_t width = gain.size();
  for (std::size_t at = 0; at < x.size(); at += width) {
    float squares = 0;
    for (std::size_t k = 0; k < width; ++k) {
      squares += x[at + k] * x[at + k];
    }
    const float scale = 1 / std::sqrt(squares / static_cast<float>(width) + kNormEpsilon);
    for (std::size_t k = 0; k < width; ++k) {
      y[at + k] = x[at + k] * scale * gain[k];
    }
  }
}

void rms_norm_backward(std::span<const float> x, std::span<const float> gain,
                       std::span<const float> dy, std::span<float> dx, std::span<float> dgain) {
  const std::size_t width = gain.size();
  for (std::size_t at = 0; at < x.size(); at += width) {
    float squares = 0;
    float product = 0;
    for (std::size_t k = 0; k < width; ++k) {
      squares += x[at + k] * x[at + k];
      product += dy[at + k] * gain[k] * x[at + k];
    }
    const float scale = 1 / std::sqrt(squares / static_cast<float>(width) + kNormEpsilon);
    const float shared = product * scale * scale * scale / static_cast<float>(width);
    const std::span<float> gain_row = dgain.subspan(dgain.size() == width ? 0 : at, width);
    for (std::size_t k = 0; k < width; ++k) {
      gain_row[k] += dy[at + k] * x[at + k] * scale;
      dx[at + k] = dy[at + k] * gain[k] * scale - x[at + k] * shared;
    }
  }
}

namespace {

constexpr float kGeluScale = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;

}  // namespace

void gelu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float inner = kGeluScale * (x[i] + kGeluCubic * x[i] * x[i] * x[i]);
    y[i] = 0.5F * x[i] * (1 + std::tanh(inner));
  }
}

void gelu_backward(std::span<const float> x, std::span<const float> dy, std::span<float> dx) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float t = std::tanh(kGeluScale * (x[i] + kGeluCubic * x[i] * x[i] * x[i]));
    const float slope = kGeluScale * (1 + 3 * kGeluCubic * x[i] * x[i]);
    dx[i] = dy[i] * (0.5F * (1 + t) + 0.5F * x[i] * (1 - t * t) * slope);
  }
}

void gated(std::span<const float> gate, std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = gate[i] / (1 + std::exp(-gate[i])) * x[i];
  }
}

void gated_backward(std::span<const float> gate, std::span<const float> x,
                    std::span<const float> dy, std::span<float> dgate, std::span<float> dx) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float share = 1 / (1 + std::exp(-gate[i]));
    dgate[i] = dy[i] * x[i] * share * (1 + gate[i] * (1 - share));
    dx[i] = dy[i] * gate[i] * share;
  }
}

void rotate(std::span<float> x, std::size_t rows, std::span<const std::size_t> positions,
            std::size_t dim, float direction) {
  const std::size_t row_size = rows == 0 ? 0 : x.size() / rows;
  for (std::size_t i = 0; i < dim / 2; ++i) {
    const double rate = std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
    for (std::size_t row = 0; row < rows; ++row) {
      const double angle = static_cast<double>(positions[row % positions.size()]) * rate;
      const auto cosine = static_cast<float>(std::cos(angle));
      const float sine = direction * static_cast<float>(std::sin(angle));
      for (std::size_t head = 0; head < row_size; head += dim) {
        float& a = x[row * row_size + head + i];
        float& b = x[row * row_size + head + i + dim / 2];
        const float turned = a * cosine - b * sine;
        b = a * sine + b * cosine;
        a = turned;
      }
    }
  }
}

namespace {

float dot(const float* a, const float* b, std::size_t count) {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

void add_scaled(float* target, const float* source, float factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    target[i] += source[i] * factor;
  }
}

// Addresses of the rows of queries or keys.
struct Rows {
  const up::AttentionShape& shape;
  std::size_t queries;
  std::size_t keys;
  std::size_t sums_at(std::size_t b, std::size_t row, std::size_t head) const {
    return (b * queries + row) * shape.heads + head;
  }
  std::size_t key_at(std::size_t b, std::size_t row, std::size_t head) const {
    return ((b * keys + row) * shape.key_value_heads + shape.key_value_of(head)) * shape.dim;
  }
};

// Calls body(batch, row, head) for every row of every head.
template <typename Body>
void for_each_row(const up::AttentionBlock& block, const Body& body) {
  for (std::size_t b = 0; b < block.shape.batch; ++b) {
    for (std::size_t row = 0; row < block.query_positions.size(); ++row) {
      for (std::size_t head = 0; head < block.shape.heads; ++head) {
        body(b, row, head);
      }
    }
  }
}

void attention_forward(const up::AttentionBlock& block, float* out, float* log_sum) {
  const std::size_t dim = block.shape.dim;
  const Rows rows{block.shape, block.query_positions.size(), block.key_positions.size()};
  const float* keys = block.key.as<float>().data();
  const float* values = block.value.as<float>().data();
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  std::vector<float> scores(rows.keys);
  for_each_row(block, [&](std::size_t b, std::size_t row, std::size_t head) {
    const std::size_t at = rows.sums_at(b, row, head);
    const float* query = block.query.as<float>().data() + at * dim;
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t j = 0; j < rows.keys; ++j) {
      const bool seen = !block.shape.causal || block.key_positions[j] <= block.query_positions[row];
      scores[j] = seen ? scale * dot(query, keys + rows.key_at(b, j, head), dim)
                       : -std::numeric_limits<float>::infinity();
      largest = std::max(largest, scores[j]);
    }
    std::fill_n(out + at * dim, dim, 0.0F);
    log_sum[at] = largest;
    if (largest == -std::numeric_limits<float>::infinity()) {
      return;
    }
    float sum = 0;
    for (std::size_t j = 0; j < rows.keys; ++j) {
      const float weight = std::exp(scores[j] - largest);
      if (weight != 0) {
        sum += weight;
        add_scaled(out + at * dim, values + rows.key_at(b, j, head), weight, dim);
      }
    }
    for (std::size_t k = 0; k < dim; ++k) {
      out[at * dim + k] /= sum;
    }
    log_sum[at] = largest + std::log(sum);
  });
}

void attention_backward(const up::AttentionBlock& block, const up::AttentionBackward& back) {
  const std::size_t dim = block.shape.dim;
  const Rows rows{block.shape, block.query_positions.size(), block.key_positions.size()};
  const float* keys = block.key.as<float>().data();
  const float* values = block.value.as<float>().data();
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  for_each_row(block, [&](std::size_t b, std::size_t row, std::size_t head) {
    const std::size_t at = rows.sums_at(b, row, head);
    const float* query = block.query.as<float>().data() + at * dim;
    const float* gradient = back.gradient.as<float>().data() + at * dim;
    for (std::size_t j = 0; j < rows.keys; ++j) {
      if (block.shape.causal && block.key_positions[j] > block.query_positions[row]) {
        continue;
      }
      const std::size_t key = rows.key_at(b, j, head);
      const float weight = std::exp(scale * dot(query, keys + key, dim) - back.log_sum[at]);
      const float slope = scale * weight * (dot(gradient, values + key, dim) - back.delta[at]);
      add_scaled(back.value_gradient + key, gradient, weight, dim);
      add_scaled(back.query_gradient + at * dim, keys + key, slope, dim);
      add_scaled(back.key_gradient + key, query, slope, dim);
    }
  });
}

}  // namespace

up::AttentionKernel attention_kernel() {
  return {.forward = attention_forward, .backward = attention_backward};
}

}  // namespace transformer
