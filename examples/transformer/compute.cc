#include "compute.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#ifdef TRANSFORMER_OPENBLAS
#include <cblas.h>
#endif

namespace transformer {
namespace {

namespace up = unisono::parallel;

constexpr float kNormEpsilon = 1e-5F;

// Products in order go by tiles; those at the edge are filled up with zeros.
constexpr std::size_t kTileRows = 4;
constexpr std::size_t kTileColumns = 16;

// Not contracted to fused multiply-adds, which not all processors have.
#if defined(__x86_64__) && defined(__GNUC__)
[[gnu::target_clones("avx2", "default")]]
#endif
void multiply_tile(const float* a, const float* b, std::size_t depth, float* c) {
  using Eight [[gnu::vector_size(32)]] = float;
  Eight sums[kTileRows][2] = {};
  for (std::size_t k = 0; k < depth; ++k, a += kTileRows, b += kTileColumns) {
    Eight low;
    Eight high;
    std::memcpy(&low, b, sizeof(low));
    std::memcpy(&high, b + 8, sizeof(high));
    for (std::size_t i = 0; i < kTileRows; ++i) {
      sums[i][0] += a[i] * low;
      sums[i][1] += a[i] * high;
    }
  }
  std::memcpy(c, sums, sizeof(sums));
}

// Lays elements out as tiles read them: [tile][k][lane].
template <typename At>
std::vector<float> tiles_of(std::size_t lanes, std::size_t depth, std::size_t tile, const At& at) {
  const std::size_t tiles = (lanes + tile - 1) / tile;
  std::vector<float> out(tiles * depth * tile);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    float* const to = &out[lane / tile * depth * tile + lane % tile];
    for (std::size_t k = 0; k < depth; ++k) {
      to[k * tile] = at(lane, k);
    }
  }
  return out;
}

void multiply_in_order(const Product& p, std::size_t a_step, std::size_t b_step) {
  const std::vector<float> a = tiles_of(p.m, p.k, kTileRows, [&](std::size_t i, std::size_t k) {
    return p.transpose_a ? p.a[k * a_step + i] : p.a[i * a_step + k];
  });
  const std::vector<float> b = tiles_of(p.n, p.k, kTileColumns, [&](std::size_t j, std::size_t k) {
    return p.transpose_b ? p.b[j * b_step + k] : p.b[k * b_step + j];
  });
  std::array<float, kTileRows * kTileColumns> tile;
  for (std::size_t j = 0; j < p.n; j += kTileColumns) {
    for (std::size_t i = 0; i < p.m; i += kTileRows) {
      multiply_tile(a.data() + i * p.k, b.data() + j * p.k, p.k, tile.data());
      for (std::size_t row = i; row < std::min(i + kTileRows, p.m); ++row) {
        for (std::size_t column = j; column < std::min(j + kTileColumns, p.n); ++column) {
          const float sum = tile[(row - i) * kTileColumns + column - j];
          float& to = p.c[row * p.n + column];
          to = p.add ? to + sum : sum;
        }
      }
    }
  }
}

// The distances between rows in memory.
std::size_t a_step_of(const Product& p) {
  return p.a_step != 0 ? p.a_step : p.transpose_a ? p.m : p.k;
}
std::size_t b_step_of(const Product& p) {
  return p.b_step != 0 ? p.b_step : p.transpose_b ? p.k : p.n;
}

}  // namespace

#ifdef TRANSFORMER_OPENBLAS

void multiply(const Product& p) {
  // One thread per rank: the ranks provide the parallelism here.
  static const bool once = (openblas_set_num_threads(1), true);
  static_cast<void>(once);
  if (p.m == 0 || p.n == 0) {
    return;
  }
  if (p.in_order) {
    multiply_in_order(p, a_step_of(p), b_step_of(p));
    return;
  }
  const auto lead = [](std::size_t columns) {
    return static_cast<blasint>(std::max<std::size_t>(columns, 1));
  };
  cblas_sgemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
              p.transpose_b ? CblasTrans : CblasNoTrans, static_cast<blasint>(p.m),
              static_cast<blasint>(p.n), static_cast<blasint>(p.k), 1.0F, p.a, lead(a_step_of(p)),
              p.b, lead(b_step_of(p)), p.add ? 1.0F : 0.0F, p.c, lead(p.n));
}

const char* product_library() {
  return "OpenBLAS";
}

#else

void multiply(const Product& p) {
  const std::size_t a_step = a_step_of(p);
  const std::size_t b_step = b_step_of(p);
  if (p.in_order) {
    multiply_in_order(p, a_step, b_step);
    return;
  }
  for (std::size_t i = 0; i < p.m; ++i) {
    float* row = p.c + i * p.n;
    if (!p.add) {
      std::fill_n(row, p.n, 0.0F);
    }
    for (std::size_t k = 0; k < p.k; ++k) {
      const float a = p.transpose_a ? p.a[k * a_step + i] : p.a[i * a_step + k];
      for (std::size_t j = 0; j < p.n; ++j) {
        row[j] += a * (p.transpose_b ? p.b[j * b_step + k] : p.b[k * b_step + j]);
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

void linear_part(std::span<const float> x, std::span<const float> w, std::span<float> y,
                 std::size_t rows, const Part& part) {
  if (rows == 0) {
    return;
  }
  const std::size_t inputs = x.size() / rows;
  const std::size_t depth = inputs / part.parts;
  multiply({.m = rows,
            .n = y.size() / rows,
            .k = depth,
            .a = x.data() + part.index * depth,
            .b = w.data() + part.index * depth,
            .c = y.data(),
            .transpose_b = true,
            .in_order = true,
            .a_step = inputs,
            .b_step = inputs});
}

void linear_part_backward_input(std::span<const float> w, std::span<const float> dy,
                                std::span<float> dx, std::size_t rows, const Part& part,
                                bool add_dx) {
  if (rows == 0) {
    return;
  }
  const std::size_t outputs = dy.size() / rows;
  const std::size_t depth = outputs / part.parts;
  const std::size_t inputs = dx.size() / rows;
  multiply({.m = rows,
            .n = inputs,
            .k = depth,
            .a = dy.data() + part.index * depth,
            .b = w.data() + part.index * depth * inputs,
            .c = dx.data(),
            .add = add_dx,
            .in_order = true,
            .a_step = outputs});
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

// The beginnings of the rows of queries or keys.
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

// body(batch, row, head) for every row of every head.
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
