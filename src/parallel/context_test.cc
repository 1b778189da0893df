// Compares attention over a sharded sequence with attention in one piece, in f64 from the formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "unisono/parallel/context_parallel.hpp"
#include "unisono/parallel/mesh.hpp"

namespace unisono::parallel {
namespace {

std::vector<float> floats_of(ConstAnySpan elements) {
  std::vector<float> floats(elements.size());
  convert(elements, floats);
  return floats;
}

// An attention block converted to f32.
struct Wide {
  explicit Wide(const AttentionBlock& b)
      : shape(b.shape),
        query_positions(b.query_positions),
        key_positions(b.key_positions),
        query(floats_of(b.query)),
        key(floats_of(b.key)),
        value(floats_of(b.value)) {}
  AttentionShape shape;
  std::span<const std::size_t> query_positions, key_positions;
  std::vector<float> query, key, value;
};

// The weights of one query of one head for a block, before normalisation, and their largest logit.
struct Scores {
  std::vector<double> logits;
  double largest = -std::numeric_limits<double>::infinity();
};

struct At {
  std::size_t batch, row, head;
};

std::size_t query_at(const Wide& b, const At& at) {
  return (at.batch * b.query_positions.size() + at.row) * b.shape.heads + at.head;
}
std::size_t key_at(const Wide& b, const At& at, std::size_t key) {
  const std::size_t head = b.shape.key_value_of(at.head);
  return ((at.batch * b.key_positions.size() + key) * b.shape.key_value_heads + head) * b.shape.dim;
}

Scores scores(const Wide& b, const At& at) {
  Scores result;
  for (std::size_t j = 0; j < b.key_positions.size(); ++j) {
    double logit = -std::numeric_limits<double>::infinity();
    if (!b.shape.causal || b.key_positions[j] <= b.query_positions[at.row]) {
      logit = 0;
      for (std::size_t k = 0; k < b.shape.dim; ++k) {
        logit += static_cast<double>(b.query[query_at(b, at) * b.shape.dim + k]) *
                 b.key[key_at(b, at, j) + k];
      }
    }
    result.logits.push_back(logit);
    result.largest = std::max(result.largest, logit);
  }
  return result;
}

template <typename Body>
void for_each_row(const Wide& b, const Body& body) {
  for (std::size_t batch = 0; batch < b.shape.batch; ++batch) {
    for (std::size_t row = 0; row < b.query_positions.size(); ++row) {
      for (std::size_t head = 0; head < b.shape.heads; ++head) {
        body(At{batch, row, head});
      }
    }
  }
}

void forward(const AttentionBlock& block, float* out, float* log_sum) {
  const Wide b(block);
  for_each_row(b, [&](const At& at) {
    const Scores s = scores(b, at);
    const std::size_t q = query_at(b, at);
    std::vector<double> sum(b.shape.dim);
    double all = 0;
    for (std::size_t j = 0; j < s.logits.size() && std::isfinite(s.largest); ++j) {
      const double weight = std::exp(s.logits[j] - s.largest);
      all += weight;
      for (std::size_t k = 0; k < sum.size(); ++k) {
        sum[k] += weight * b.value[key_at(b, at, j) + k];
      }
    }
    for (std::size_t k = 0; k < sum.size(); ++k) {
      out[q * sum.size() + k] = all == 0 ? 0 : static_cast<float>(sum[k] / all);
    }
    log_sum[q] = static_cast<float>(all == 0 ? s.largest : s.largest + std::log(all));
  });
}

void backward(const AttentionBlock& block, const AttentionBackward& back) {
  const Wide b(block);
  const std::vector<float> gradient = floats_of(back.gradient);
  for_each_row(b, [&](const At& at) {
    const Scores s = scores(b, at);
    const std::size_t q = query_at(b, at);
    for (std::size_t j = 0; j < s.logits.size(); ++j) {
      const double weight = std::exp(s.logits[j] - back.log_sum[q]);
      const std::size_t key = key_at(b, at, j);
      double slope = -back.delta[q];
      for (std::size_t k = 0; k < b.shape.dim; ++k) {
        slope += static_cast<double>(gradient[q * b.shape.dim + k]) * b.value[key + k];
      }
      for (std::size_t k = 0; k < b.shape.dim; ++k) {
        back.value_gradient[key + k] += static_cast<float>(weight * gradient[q * b.shape.dim + k]);
        back.query_gradient[q * b.shape.dim + k] +=
            static_cast<float>(weight * slope * b.key[key + k]);
        back.key_gradient[key + k] +=
            static_cast<float>(weight * slope * b.query[q * b.shape.dim + k]);
      }
    }
  });
}

const AttentionKernel kKernel{.forward = forward, .backward = backward};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

// Returns the rows at these positions of a whole [batch, length, width].
std::vector<float> rows_of(const std::vector<float>& whole, const std::vector<std::size_t>& places,
                           std::size_t batch, std::size_t length, std::size_t width) {
  std::vector<float> rows;
  for (std::size_t b = 0; b < batch; ++b) {
    for (const std::size_t place : places) {
      const auto first = whole.begin() + static_cast<std::ptrdiff_t>((b * length + place) * width);
      rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(width));
    }
  }
  return rows;
}

void expect_near(const std::vector<float>& is, const std::vector<float>& right, const char* what) {
  ASSERT_EQ(is.size(), right.size()) << what;
  for (std::size_t i = 0; i < is.size(); ++i) {
    ASSERT_NEAR(is[i], right[i], 2e-4) << what << " " << i;
  }
}

void expect_same_bits(const std::vector<float>& is, const std::vector<float>& right,
                      const char* what) {
  ASSERT_EQ(is.size(), right.size()) << what;
  for (std::size_t i = 0; i < is.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(is[i]), std::bit_cast<std::uint32_t>(right[i]))
        << what << " " << i << ": " << is[i] << ", not " << right[i];
  }
}

struct Whole {
  AttentionShape shape;
  std::size_t length;
  std::vector<float> q, k, v, g, out, log_sum, dq, dk, dv;
};

Whole whole_of(const AttentionShape& shape, std::size_t length, std::size_t blocks = 0) {
  const std::size_t rows = shape.batch * length;
  Whole w{.shape = shape,
          .length = length,
          .q = random_values(rows * shape.heads * shape.dim, 1),
          .k = random_values(rows * shape.key_value_heads * shape.dim, 2),
          .v = random_values(rows * shape.key_value_heads * shape.dim, 3),
          .g = random_values(rows * shape.heads * shape.dim, 4),
          .out = {},
          .log_sum = {},
          .dq = {},
          .dk = {},
          .dv = {}};
  w.out.resize(w.q.size());
  w.log_sum.resize(rows * shape.heads);
  w.dq.resize(w.q.size());
  w.dk.resize(w.k.size());
  w.dv.resize(w.k.size());
  const ContextAxes alone{.blocks = blocks};
  context_attention(alone, shape, length, kKernel, w.q, w.k, w.v, w.out, w.log_sum);
  context_attention_backward(alone, shape, length, kKernel, w.q, w.k, w.v, w.out, w.log_sum, w.g,
                             {.query = w.dq, .key = w.dk, .value = w.dv});
  return w;
}

void expect_as_one(const ContextAxes& axes, const Whole& w) {
  const auto expect_right = [&](const std::vector<float>& is, const std::vector<float>& right,
                                const char* what) {
    if (axes.blocks == 0) {
      expect_near(is, right, what);
    } else {
      expect_same_bits(is, right, what);
    }
  };
  const auto places = axes.positions(w.length);
  const std::size_t wide = w.shape.heads * w.shape.dim;
  const std::size_t narrow = w.shape.key_value_heads * w.shape.dim;
  const auto part = [&](const std::vector<float>& all, std::size_t width) {
    return rows_of(all, places, w.shape.batch, w.length, width);
  };
  const auto q = part(w.q, wide);
  const auto k = part(w.k, narrow);
  const auto v = part(w.v, narrow);
  std::vector<float> out(q.size());
  std::vector<float> log_sum(q.size() / w.shape.dim);
  context_attention(axes, w.shape, w.length, kKernel, q, k, v, out, log_sum);
  expect_right(out, part(w.out, wide), "out");
  expect_right(log_sum, part(w.log_sum, w.shape.heads), "log_sum");
  std::vector<float> dq(q.size(), 7.0F);
  std::vector<float> dk(k.size(), 7.0F);
  std::vector<float> dv(k.size(), 7.0F);
  context_attention_backward(axes, w.shape, w.length, kKernel, q, k, v, out, log_sum,
                             part(w.g, wide), {.query = dq, .key = dk, .value = dv});
  expect_right(dq, part(w.dq, wide), "dq");
  expect_right(dk, part(w.dk, narrow), "dk");
  expect_right(dv, part(w.dv, narrow), "dv");
}

TEST(Context, BackwardIsTheSlopeOfForward) {
  const Whole w = whole_of({.batch = 1, .heads = 2, .key_value_heads = 1, .dim = 3}, 4);
  const auto loss = [&](const std::vector<float>& q, const std::vector<float>& k) {
    std::vector<float> out(w.out.size());
    std::vector<float> log_sum(w.log_sum.size());
    context_attention({}, w.shape, 4, kKernel, q, k, w.v, out, log_sum);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      sum += static_cast<double>(out[i]) * w.g[i];
    }
    return sum;
  };
  constexpr float kStep = 1e-2F;
  for (std::size_t i = 0; i < w.q.size(); ++i) {
    auto up = w.q;
    auto down = w.q;
    up[i] += kStep;
    down[i] -= kStep;
    ASSERT_NEAR((loss(up, w.k) - loss(down, w.k)) / (2 * kStep), w.dq[i], 5e-3);
  }
  for (std::size_t i = 0; i < w.k.size(); ++i) {
    auto up = w.k;
    auto down = w.k;
    up[i] += kStep;
    down[i] -= kStep;
    ASSERT_NEAR((loss(w.q, up) - loss(w.q, down)) / (2 * kStep), w.dk[i], 5e-3);
  }
}

class Orders : public ::testing::TestWithParam<std::tuple<ContextOrder, bool>> {};
INSTANTIATE_TEST_SUITE_P(All, Orders,
                         ::testing::Combine(::testing::Values(ContextOrder::contiguous,
                                                              ContextOrder::zigzag,
                                                              ContextOrder::striped),
                                            ::testing::Bool()));

TEST_P(Orders, EveryMethodIsAsOneRank) {
  const auto [order, causal] = GetParam();
  const Whole w =
      whole_of({.batch = 2, .heads = 8, .key_value_heads = 4, .dim = 3, .causal = causal}, 16);
  for (const char* text : {"cp=1,uly=1", "cp=2,uly=1", "cp=4,uly=1", "cp=1,uly=2", "cp=1,uly=4",
                           "cp=2,uly=2", "cp=2,uly=4"}) {
    run_threads(MeshShape::parse(text).ranks(), [&](Communicator& comm) {
      SCOPED_TRACE(text);
      Mesh mesh = Mesh::create(comm, text);
      for (const ContextMethod method : {ContextMethod::ring, ContextMethod::all_gather}) {
        expect_as_one({.outer = &mesh.axis("cp"),
                       .heads = &mesh.axis("uly"),
                       .method = method,
                       .order = order},
                      w);
      }
    });
  }
}

// Results and gradients over blocks: a sum has the order of the tree over the blocks, on one rank,
// in a ring and with Ulysses.
TEST_P(Orders, AnyNumberOfBlocksHasTheBitsOfOneRank) {
  const auto [order, causal] = GetParam();
  const AttentionShape shape{
      .batch = 2, .heads = 8, .key_value_heads = 4, .dim = 3, .causal = causal};
  for (const std::size_t blocks : {1U, 2U, 8U, 11U, 16U}) {
    SCOPED_TRACE(blocks);
    const Whole w = whole_of(shape, 16, blocks);
    const Whole plain = whole_of(shape, 16);
    expect_near(w.out, plain.out, "out");
    expect_near(w.dq, plain.dq, "dq");
    expect_near(w.dk, plain.dk, "dk");
    expect_near(w.dv, plain.dv, "dv");
    for (const int ranks : {1, 2, 4}) {
      run_threads(ranks, [&](Communicator& comm) {
        expect_as_one({.heads = &comm, .order = order, .blocks = blocks}, w);
      });
    }
    if (order == ContextOrder::striped || 16 % blocks != 0) {
      continue;
    }
    for (const char* text : {"cp=1,uly=2", "cp=2,uly=1", "cp=2,uly=2", "cp=2,uly=4", "cp=4,uly=1",
                             "cp=4,uly=2", "cp=8,uly=1"}) {
      const MeshShape mesh_shape = MeshShape::parse(text);
      const auto parts = static_cast<std::size_t>(
          order == ContextOrder::zigzag ? 2 * mesh_shape.ranks() : mesh_shape.ranks());
      if (blocks % parts != 0) {
        continue;
      }
      run_threads(mesh_shape.ranks(), [&](Communicator& comm) {
        SCOPED_TRACE(text);
        Mesh mesh = Mesh::create(comm, text);
        for (const ContextMethod method : {ContextMethod::ring, ContextMethod::all_gather}) {
          expect_as_one({.outer = &mesh.axis("cp"),
                         .heads = &mesh.axis("uly"),
                         .method = method,
                         .order = order,
                         .blocks = blocks},
                        w);
        }
      });
    }
  }
}

// A forward pass that gathers keys accepts queries that are not whole blocks. All other calls
// refuse them.
TEST_P(Orders, PartsOfBlocksAreGatheredOrRefused) {
  const auto [order, causal] = GetParam();
  const Whole w =
      whole_of({.batch = 2, .heads = 8, .key_value_heads = 4, .dim = 3, .causal = causal}, 16, 1);
  run_threads(4, [&](Communicator& comm) {
    Mesh mesh = Mesh::create(comm, "cp=2,uly=2");
    ContextAxes axes{.outer = &mesh.axis("cp"),
                     .heads = &mesh.axis("uly"),
                     .method = ContextMethod::all_gather,
                     .order = order,
                     .blocks = 1};
    const auto part = [&](const std::vector<float>& all, std::size_t width) {
      return rows_of(all, axes.positions(w.length), w.shape.batch, w.length, width);
    };
    const auto q = part(w.q, 24);
    const auto k = part(w.k, 12);
    const auto v = part(w.v, 12);
    std::vector<float> out(q.size());
    std::vector<float> log_sum(q.size() / 3);
    context_attention(axes, w.shape, w.length, kKernel, q, k, v, out, log_sum);
    expect_same_bits(out, part(w.out, 24), "out");
    expect_same_bits(log_sum, part(w.log_sum, 8), "log_sum");
    std::vector<float> dq(q.size());
    std::vector<float> dk(k.size());
    EXPECT_THROW(context_attention_backward(axes, w.shape, w.length, kKernel, q, k, v, out, log_sum,
                                            part(w.g, 24), {.query = dq, .key = dk, .value = dk}),
                 Error);
    axes.method = ContextMethod::ring;
    try {
      context_attention(axes, w.shape, w.length, kKernel, q, k, v, out, log_sum);
      ADD_FAILURE();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.substr(0, text.find('\n')),
                "usage: context attention: a rank has 8 of the 16 positions of block 0 of 1");
    }
  });
}

// Includes fewer positions than blocks.
TEST_P(Orders, RingsOfBlocksTakeUnevenParts) {
  const auto [order, causal] = GetParam();
  if (order == ContextOrder::striped) {
    return;
  }
  for (const std::size_t length : {0U, 1U, 2U, 7U, 13U}) {
    const Whole w =
        whole_of({.batch = 2, .heads = 2, .key_value_heads = 2, .dim = 2, .causal = causal}, length,
                 order == ContextOrder::zigzag ? 6 : 3);
    run_threads(3, [&](Communicator& comm) {
      expect_as_one(
          {.outer = &comm, .order = order, .blocks = order == ContextOrder::zigzag ? 6U : 3U}, w);
    });
  }
}

TEST_P(Orders, RingsTakeUnevenParts) {
  const auto [order, causal] = GetParam();
  for (const std::size_t length : {1U, 2U, 7U, 13U}) {
    const Whole w = whole_of(
        {.batch = 2, .heads = 2, .key_value_heads = 2, .dim = 2, .causal = causal}, length);
    run_threads(3, [&](Communicator& comm) { expect_as_one({.outer = &comm, .order = order}, w); });
  }
}

TEST(Context, ZigzagAndStripesShareTheWork) {
  for (const int ranks : {2, 4, 8, 16}) {
    for (const ContextOrder order : {ContextOrder::zigzag, ContextOrder::striped}) {
      std::size_t most = 0;
      std::size_t all = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        most = std::max(most, causal_work(order, 8192, ranks, rank));
        all += causal_work(order, 8192, ranks, rank);
      }
      EXPECT_EQ(all, std::size_t{8192} * 8193 / 2);
      EXPECT_LE(static_cast<double>(most) * ranks / static_cast<double>(all), 1.05);
    }
  }
  // Without zigzag the last of 8 ranks has almost twice the mean work.
  EXPECT_GT(static_cast<double>(causal_work(ContextOrder::contiguous, 8192, 8, 7)) * 8,
            1.8 * 8192 * 8193 / 2);
}

TEST(Context, DecodesOverAShardedCache) {
  const AttentionShape shape{
      .batch = 2, .heads = 4, .key_value_heads = 2, .dim = 3, .causal = false};
  constexpr std::size_t kKeys = 10;
  const auto q = random_values(2 * 4 * 3, 1);
  const auto k = random_values(2 * kKeys * 2 * 3, 2);
  const auto v = random_values(2 * kKeys * 2 * 3, 3);
  const std::vector<std::size_t> one = {kKeys};
  std::vector<std::size_t> all(kKeys);
  std::vector<float> right(q.size());
  std::vector<float> right_sum(8);
  forward({.shape = shape,
           .query_positions = one,
           .key_positions = all,
           .query = q,
           .key = k,
           .value = v},
          right.data(), right_sum.data());
  run_threads(4, [&](Communicator& comm) {
    // The last rank has no keys yet.
    const std::vector<std::size_t> places =
        comm.rank() == 3 ? std::vector<std::size_t>()
                         : context_positions(ContextOrder::contiguous, kKeys, 3, comm.rank());
    const auto keys = rows_of(k, places, 2, kKeys, 6);
    const auto values = rows_of(v, places, 2, kKeys, 6);
    std::vector<float> out(q.size());
    std::vector<float> log_sum(8);
    forward({.shape = shape,
             .query_positions = one,
             .key_positions = places,
             .query = q,
             .key = keys,
             .value = values},
            out.data(), log_sum.data());
    merge_decoded(comm, shape, out, log_sum);
    expect_near(out, right, "out");
    expect_near(log_sum, right_sum, "log_sum");
  });
}

// Rank 2 of 3 with 8 heads and 4 key-value heads: heads 5 to 7 use the key-value heads 2, 3 and 3.
TEST(Context, HeadsThatAreCutUnevenlyUseTheirKeys) {
  const Whole w = whole_of({.heads = 8, .key_value_heads = 4, .dim = 2}, 5);
  const auto heads_of = [](const std::vector<float>& all, std::size_t width, std::size_t first,
                           std::size_t count) {
    std::vector<float> part;
    for (std::size_t row = 0; row < all.size(); row += width) {
      const auto at = all.begin() + static_cast<std::ptrdiff_t>(row + first);
      part.insert(part.end(), at, at + static_cast<std::ptrdiff_t>(count));
    }
    return part;
  };
  const AttentionShape shape{
      .heads = 3, .key_value_heads = 2, .dim = 2, .heads_per_key = 2, .offset = 1};
  const auto q = heads_of(w.q, 16, 10, 6);
  const auto k = heads_of(w.k, 8, 4, 4);
  const auto v = heads_of(w.v, 8, 4, 4);
  const ContextAxes alone;
  std::vector<float> out(q.size());
  std::vector<float> log_sum(15);
  context_attention(alone, shape, 5, kKernel, q, k, v, out, log_sum);
  EXPECT_EQ(out, heads_of(w.out, 16, 10, 6));
  const AttentionShape wrong{
      .heads = 3, .key_value_heads = 2, .dim = 2, .heads_per_key = 3, .offset = 0};
  EXPECT_THROW(context_attention(alone, wrong, 5, kKernel, q, k, v, out, log_sum), Error);
  const AttentionShape uneven{.heads = 3, .key_value_heads = 2, .dim = 2};
  EXPECT_THROW(context_attention(alone, uneven, 5, kKernel, q, k, v, out, log_sum), Error);
  run_threads(2, [](Communicator& comm) {  // 6 heads do not divide 4 evenly
    const std::vector<float> x(6);
    std::vector<float> y(6);
    EXPECT_THROW(context_attention({.heads = &comm}, {.heads = 6, .key_value_heads = 4}, 2, kKernel,
                                   x, std::span(x).first(4), std::span(x).first(4), y, y),
                 Error);
  });
}

TEST(Context, RowsWithoutElementsHaveLogSums) {
  std::vector<float> log_sum(8, 1);
  const std::vector<float> none;
  std::vector<float> out;
  for (const std::size_t blocks : {0U, 2U}) {
    context_attention({.blocks = blocks}, {.heads = 2, .key_value_heads = 1, .dim = 0}, 4, kKernel,
                      none, none, none, out, log_sum);
    EXPECT_TRUE(std::ranges::none_of(log_sum, [](float value) { return std::isnan(value); }));
  }
}

template <typename T>
std::vector<T> narrow(const std::vector<float>& values) {
  std::vector<T> result(values.size());
  convert(values, result);
  return result;
}
template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](T x, T y) { return x.bits == y.bits; });
}

template <typename T>
class ContextOf : public ::testing::Test {};
using Narrow = ::testing::Types<bf16, f16, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(ContextOf, Narrow);

// A kernel sees the values that f32 would have, so each result is the f32 result, rounded once.
template <typename T>
void expect_rounded_once(const ContextAxes& axes, const AttentionShape& shape, std::size_t length) {
  const std::size_t rows = shape.batch * axes.positions(length).size();
  const auto rank = static_cast<unsigned>(axes.rank());
  const auto numbers = [&](std::size_t heads, unsigned seed) {
    return narrow<T>(random_values(rows * heads * shape.dim, 8 * rank + seed));
  };
  const auto q = numbers(shape.heads, 1);
  const auto k = numbers(shape.key_value_heads, 2);
  const auto v = numbers(shape.key_value_heads, 3);
  const auto g = numbers(shape.heads, 4);
  const auto wide_q = floats_of(q);
  const auto wide_k = floats_of(k);
  const auto wide_v = floats_of(v);
  std::vector<float> wide_out(q.size());
  std::vector<float> wide_sum(rows * shape.heads);
  context_attention(axes, shape, length, kKernel, wide_q, wide_k, wide_v, wide_out, wide_sum);
  std::vector<T> out(q.size());
  std::vector<float> sum(wide_sum.size());
  context_attention(axes, shape, length, kKernel, q, k, v, out, sum);
  EXPECT_TRUE(same_bits(out, narrow<T>(wide_out)));
  EXPECT_EQ(sum, wide_sum);
  std::vector<float> wide_dq(q.size());
  std::vector<float> wide_dk(k.size());
  std::vector<float> wide_dv(k.size());
  context_attention_backward(axes, shape, length, kKernel, wide_q, wide_k, wide_v, floats_of(out),
                             sum, floats_of(g),
                             {.query = wide_dq, .key = wide_dk, .value = wide_dv});
  std::vector<T> dq(q.size());
  std::vector<T> dk(k.size());
  std::vector<T> dv(k.size());
  context_attention_backward(axes, shape, length, kKernel, q, k, v, out, sum, g,
                             {.query = dq, .key = dk, .value = dv});
  EXPECT_TRUE(same_bits(dq, narrow<T>(wide_dq)));
  EXPECT_TRUE(same_bits(dk, narrow<T>(wide_dk)));
  EXPECT_TRUE(same_bits(dv, narrow<T>(wide_dv)));
}

TYPED_TEST(ContextOf, EachResultIsRoundedOnce) {
  for (const int ranks : {1, 2, 3, 4, 5}) {
    run_threads(ranks, [](Communicator& comm) {
      const AttentionShape odd{.batch = 2, .heads = 4, .key_value_heads = 2, .dim = 3};
      for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{13}}) {
        expect_rounded_once<TypeParam>({.outer = &comm}, odd, length);
      }
      const auto n = static_cast<std::size_t>(comm.size());
      expect_rounded_once<TypeParam>({.outer = &comm, .method = ContextMethod::all_gather}, odd,
                                     2 * n);
      const AttentionShape cut{.batch = 2, .heads = 2 * n, .key_value_heads = n, .dim = 3};
      expect_rounded_once<TypeParam>({.heads = &comm}, cut, 2 * n);
    });
  }
}

TYPED_TEST(ContextOf, DecodingMergesInF32) {
  run_threads(3, [](Communicator& comm) {
    const AttentionShape shape{.batch = 1, .heads = 3, .dim = 5};
    auto out = narrow<TypeParam>(random_values(15, 1 + static_cast<unsigned>(comm.rank())));
    auto sums = random_values(3, 9 + static_cast<unsigned>(comm.rank()));
    auto wide_out = floats_of(out);
    auto wide_sums = sums;
    merge_decoded(comm, shape, wide_out, wide_sums);
    merge_decoded(comm, shape, out, sums);
    EXPECT_EQ(sums, wide_sums);
    EXPECT_TRUE(same_bits(out, narrow<TypeParam>(wide_out)));
    std::vector<double> doubles(15);
    EXPECT_THROW(merge_decoded(comm, shape, doubles, sums), Error);
  });
}

TEST(Context, SaysWhichHeadsCannotBeDivided) {
  run_threads(3, [](Communicator& comm) {
    const std::vector<float> q(3 * 4);
    std::vector<float> out(12);
    std::vector<float> sums(12);
    try {
      context_attention({.heads = &comm}, {.heads = 4, .key_value_heads = 4}, 9, kKernel, q, q, q,
                        out, sums);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 104),
                "usage: context attention: 4 heads and 4 key-value heads cannot be divided among "
                "the 3 ranks of Ulysses\nm");
    }
  });
}

}  // namespace
}  // namespace unisono::parallel
