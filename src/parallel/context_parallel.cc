// Attention over a context: Ulysses outside, ring or all_gather inside.
#include "unisono/parallel/context_parallel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "parallel/block_attention.h"
#include "parallel/context_job.h"
#include "parallel/floats.h"
#include "parallel/refuse.h"
#include "parallel/ring_attention.h"
#include "unisono/parallel/placement.hpp"

namespace unisono::parallel {
namespace {

void expect(const char* name, ConstAnySpan has, std::size_t need, Dtype dtype) {
  expect_float("context attention", name, has.dtype(), dtype);
  if (has.size() != need) {
    refuse("context attention",
           std::string("`") + name + "` has " + std::to_string(has.size()) + " elements, not " +
               std::to_string(need),
           "call ContextAxes::positions() for the rows of a rank");
  }
}

Tensor tensor(ConstAnySpan data, std::size_t batch, std::size_t rows, std::size_t heads,
              std::size_t dim) {
  return Tensor::packed(const_cast<void*>(data.data()), data.dtype(), {batch, rows, heads, dim});
}

// Elements of any type, with their own memory.
struct Room {
  Room(std::size_t elements, Dtype dtype)
      : memory(elements * size_of(dtype)), span(memory.data(), elements, dtype) {}
  std::vector<std::byte> memory;
  AnySpan span;
};

// Returns the indices of the positions in ascending order of the positions.
std::vector<std::size_t> places_by_position(const std::vector<std::size_t>& positions) {
  std::vector<std::size_t> places(positions.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::sort(places, {}, [&](std::size_t place) { return positions[place]; });
  return places;
}

// Reorders the rows of each of `batch` sequences: moves row i to row places[i], or, if
// `comes_from`, in the opposite direction.
void reorder_rows(const std::vector<std::size_t>& places, std::size_t batch, AnySpan data,
                  bool comes_from) {
  const std::size_t rows = batch * places.size();
  if (rows == 0) {
    return;
  }
  const std::size_t row_bytes = data.size() / rows * size_of(data.dtype());
  auto* const to = static_cast<std::byte*>(data.data());
  const std::vector<std::byte> before(to, to + rows * row_bytes);
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t one = b * places.size() + i;
      const std::size_t other = b * places.size() + places[i];
      std::memcpy(to + (comes_from ? one : other) * row_bytes,
                  before.data() + (comes_from ? other : one) * row_bytes, row_bytes);
    }
  }
}

// A context that is sharded only along the outer axis: after Ulysses, or without it.
class Context {
 public:
  Context(const ContextAxes& axes, const AttentionShape& shape, std::size_t length)
      : axes_(axes), shape_(shape), inside_(shape), length_(length) {
    const int outer = axes.outer == nullptr ? 1 : axes.outer->size();
    const int inside = axes.heads == nullptr ? 1 : axes.heads->size();
    for (int rank = 0; rank < outer; ++rank) {
      std::vector<std::size_t> places;
      for (int i = 0; i < inside; ++i) {
        const auto part = context_positions(axes.order, length, axes.ranks(), rank * inside + i);
        places.insert(places.end(), part.begin(), part.end());
        check_part(part.size(), length);
      }
      positions_.push_back(std::move(places));
    }
    if (axes.blocks != 0) {
      order_ = places_by_position(mine());
      for (auto& places : positions_) {
        std::ranges::sort(places);
      }
    }
    const auto u = static_cast<std::size_t>(inside);
    const bool is_even = shape.key_value_heads != 0 && shape.heads % shape.key_value_heads == 0;
    if (shape.heads_per_key != 0 &&
        (shape.heads == 0 || shape.key_value_of(shape.heads - 1) + 1 != shape.key_value_heads)) {
      refuse("context attention",
             std::to_string(shape.heads) + " heads, " + std::to_string(shape.heads_per_key) +
                 " for each key-value head from number " + std::to_string(shape.offset) +
                 " on, do not use " + std::to_string(shape.key_value_heads) + " key-value heads",
             "use the numbers from head_share()");
    }
    if (shape.heads != 0 && shape.heads_per_key == 0 && !is_even) {
      refuse("context attention",
             std::to_string(shape.heads) + " heads cannot be divided among " +
                 std::to_string(shape.key_value_heads) + " key-value heads",
             "set heads_per_key and offset, as head_share() gives them");
    }
    if (u > 1 &&
        (!is_even || shape.heads % u != 0 || shape.key_value_heads % u != 0 || shape.offset != 0 ||
         (shape.heads_per_key != 0 &&
          shape.heads_per_key != shape.heads / shape.key_value_heads))) {
      refuse("context attention",
             std::to_string(shape.heads) + " heads and " + std::to_string(shape.key_value_heads) +
                 " key-value heads cannot be divided among the " + std::to_string(inside) +
                 " ranks of Ulysses",
             "make that axis smaller, or use a ring");
    }
    inside_.heads /= u;
    inside_.key_value_heads /= u;
    local_rows_ = axes.positions(length).size();
  }

  bool has_heads() const { return axes_.heads != nullptr && axes_.heads->size() > 1; }
  const AttentionShape& inside() const { return inside_; }
  std::size_t local_rows() const { return local_rows_; }
  std::size_t rows() const { return mine().size(); }
  std::size_t length() const { return length_; }
  const std::vector<std::size_t>& mine() const {
    return positions_[static_cast<std::size_t>(axes_.outer == nullptr ? 0 : axes_.outer->rank())];
  }
  const std::vector<std::vector<std::size_t>>& positions() const { return positions_; }

  // Throws unless each rank of a ring has whole blocks.
  void check_blocks(bool is_backward) const {
    if (axes_.blocks != 0 && (is_backward || axes_.method == ContextMethod::ring)) {
      for (const auto& places : positions_) {
        block_rows(places, length_, axes_.blocks);
      }
    }
  }

  // Transposes from rows to heads. `heads`: the number of heads in `data` on this rank. Returns
  // `data` if nothing moves; otherwise the result is in `room`.
  ConstAnySpan to_heads(ConstAnySpan data, std::size_t heads, std::size_t dim,
                        std::optional<Room>& room) const {
    if (!has_heads()) {
      return data;
    }
    const auto u = static_cast<std::size_t>(axes_.heads->size());
    room.emplace(shape_.batch * rows() * heads / u * dim, data.dtype());
    redistribute(*axes_.heads, tensor(data, shape_.batch, local_rows_, heads, dim), Shard(1),
                 tensor(room->span, shape_.batch, rows(), heads / u, dim), Shard(2));
    if (axes_.blocks != 0) {
      reorder_rows(order_, shape_.batch, room->span, true);
    }
    return room->span;
  }
  // Transposes back, rounding to the type of `out` before sending.
  void to_rows(std::span<const float> data, std::size_t heads, std::size_t dim, AnySpan out) const {
    if (!has_heads()) {
      convert(data, out);
      return;
    }
    const auto u = static_cast<std::size_t>(axes_.heads->size());
    ConstAnySpan from = data;
    std::optional<Room> room;
    if (out.dtype() != Dtype::f32 || axes_.blocks != 0) {
      room.emplace(data.size(), out.dtype());
      convert(data, room->span);
      from = room->span;
    }
    if (axes_.blocks != 0) {
      reorder_rows(order_, shape_.batch, room->span, false);
    }
    redistribute(*axes_.heads, tensor(from, shape_.batch, rows(), heads / u, dim), Shard(2),
                 tensor(out, shape_.batch, local_rows_, heads, dim), Shard(1));
  }

 private:
  // Data that is gathered in one piece must be divided by shard_range().
  void check_part(std::size_t rows, std::size_t length) const {
    const auto n = static_cast<std::size_t>(axes_.ranks());
    const bool in_pieces =
        has_heads() || (axes_.outer != nullptr && axes_.method == ContextMethod::all_gather);
    if (in_pieces && rows * n != length) {
      refuse("context attention",
             "a sequence of " + std::to_string(length) + " cannot be cut into " +
                 std::to_string(n) + " even parts",
             "pad it to a multiple of " + std::to_string(2 * n) + ", or use a ring");
    }
  }

  const ContextAxes& axes_;
  const AttentionShape& shape_;
  AttentionShape inside_;
  std::size_t length_;
  std::vector<std::vector<std::size_t>> positions_;
  std::vector<std::size_t> order_;  // by ascending position: where the row arrives
  std::size_t local_rows_ = 0;
};

ContextJob job_of(const ContextAxes& axes, const Context& context, const AttentionKernel& kernel,
                  ConstAnySpan query, ConstAnySpan key, ConstAnySpan value) {
  return {.axis = axes.outer,
          .shape = context.inside(),
          .kernel = kernel,
          .positions = context.positions(),
          .query = query,
          .key = key,
          .value = value,
          .length = context.length(),
          .blocks = axes.blocks};
}

AttentionBlock block_of(const Context& context, ConstAnySpan query, ConstAnySpan key,
                        ConstAnySpan value) {
  return {.shape = context.inside(),
          .query_positions = context.mine(),
          .key_positions = context.mine(),
          .query = query,
          .key = key,
          .value = value};
}

std::vector<std::size_t> arrived_positions(const ContextJob& job) {
  std::vector<std::size_t> all;
  for (const auto& part : job.positions) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Returns the keys or values of all ranks of the axis.
Room gather(const ContextJob& job, ConstAnySpan part) {
  const auto n = static_cast<std::size_t>(job.ranks());
  const std::size_t rows = job.mine().size();
  const AttentionShape& shape = job.shape;
  Room whole(job.key_count(job.rank()) * n, part.dtype());
  redistribute(
      *job.axis, tensor(part, shape.batch, rows, shape.key_value_heads, shape.dim), Shard(1),
      tensor(whole.span, shape.batch, rows * n, shape.key_value_heads, shape.dim), Replicate());
  if (job.blocks != 0) {
    reorder_rows(places_by_position(arrived_positions(job)), shape.batch, whole.span, true);
  }
  return whole;
}

std::vector<std::size_t> all_positions(const ContextJob& job) {
  std::vector<std::size_t> all = arrived_positions(job);
  if (job.blocks != 0) {
    std::ranges::sort(all);
  }
  return all;
}

}  // namespace

void gathered_forward(const ContextJob& job, float* out, float* log_sum) {
  const Room key = gather(job, job.key);
  const Room value = gather(job, job.value);
  const std::vector<std::size_t> positions = all_positions(job);
  if (job.blocks != 0) {
    BlockedResult result(job);
    result.add(positions, key.span, value.span);
    result.write(out, log_sum);
    return;
  }
  job.kernel.forward({.shape = job.shape,
                      .query_positions = job.mine(),
                      .key_positions = positions,
                      .query = job.query,
                      .key = key.span,
                      .value = value.span},
                     out, log_sum);
}

void gathered_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                       const float* delta, const WideGradients& gradients) {
  const Room key = gather(job, job.key);
  const Room value = gather(job, job.value);
  const std::vector<std::size_t> positions = all_positions(job);
  std::vector<float> key_gradient(key.span.size());
  std::vector<float> value_gradient(value.span.size());
  std::fill(gradients.query.begin(), gradients.query.end(), 0.0F);
  job.kernel.backward({.shape = job.shape,
                       .query_positions = job.mine(),
                       .key_positions = positions,
                       .query = job.query,
                       .key = key.span,
                       .value = value.span},
                      {.gradient = gradient,
                       .log_sum = log_sum,
                       .delta = delta,
                       .query_gradient = gradients.query.data(),
                       .key_gradient = key_gradient.data(),
                       .value_gradient = value_gradient.data()});
  const AttentionShape& shape = job.shape;
  const std::size_t rows = job.mine().size();
  const auto n = static_cast<std::size_t>(job.ranks());
  for (const auto& [whole, part] :
       {std::pair(&key_gradient, gradients.key), std::pair(&value_gradient, gradients.value)}) {
    redistribute(*job.axis, tensor(*whole, shape.batch, rows * n, shape.key_value_heads, shape.dim),
                 Partial(), tensor(part, shape.batch, rows, shape.key_value_heads, shape.dim),
                 Shard(1));
  }
}

void context_attention(const ContextAxes& axes, const AttentionShape& shape, std::size_t length,
                       const AttentionKernel& kernel, ConstAnySpan query, ConstAnySpan key,
                       ConstAnySpan value, AnySpan out, std::span<float> log_sum) {
  const Context context(axes, shape, length);
  context.check_blocks(false);
  const std::size_t tokens = shape.batch * context.local_rows();
  const Dtype dtype = query.dtype();
  expect("query", query, tokens * shape.heads * shape.dim, dtype);
  expect("key", key, tokens * shape.key_value_heads * shape.dim, dtype);
  expect("value", value, key.size(), dtype);
  expect("out", out, query.size(), dtype);
  expect("log_sum", log_sum, tokens * shape.heads, Dtype::f32);
  std::array<std::optional<Room>, 3> rooms;
  const ConstAnySpan q = context.to_heads(query, shape.heads, shape.dim, rooms[0]);
  const ConstAnySpan k = context.to_heads(key, shape.key_value_heads, shape.dim, rooms[1]);
  const ConstAnySpan v = context.to_heads(value, shape.key_value_heads, shape.dim, rooms[2]);
  std::vector<float> result(q.size());
  std::vector<float> result_log_sum(shape.batch * context.rows() * context.inside().heads);
  const ContextJob job = job_of(axes, context, kernel, q, k, v);
  if (job.ranks() > 1 && axes.method == ContextMethod::all_gather) {
    gathered_forward(job, result.data(), result_log_sum.data());
  } else if (job.blocks != 0) {
    blocked_forward(job, result.data(), result_log_sum.data());
  } else if (job.ranks() > 1) {
    ring_forward(job, result.data(), result_log_sum.data());
  } else {
    kernel.forward(block_of(context, q, k, v), result.data(), result_log_sum.data());
  }
  context.to_rows(result, shape.heads, shape.dim, out);
  context.to_rows(result_log_sum, shape.heads, 1, log_sum);
}

void context_attention_backward(const ContextAxes& axes, const AttentionShape& shape,
                                std::size_t length, const AttentionKernel& kernel,
                                ConstAnySpan query, ConstAnySpan key, ConstAnySpan value,
                                ConstAnySpan out, std::span<const float> log_sum,
                                ConstAnySpan gradient, const ContextGradients& gradients) {
  const Context context(axes, shape, length);
  context.check_blocks(true);
  const std::size_t tokens = shape.batch * context.local_rows();
  const Dtype dtype = query.dtype();
  expect("query", query, tokens * shape.heads * shape.dim, dtype);
  expect("key", key, tokens * shape.key_value_heads * shape.dim, dtype);
  expect("value", value, key.size(), dtype);
  expect("out", out, query.size(), dtype);
  expect("gradient", gradient, query.size(), dtype);
  expect("log_sum", log_sum, tokens * shape.heads, Dtype::f32);
  expect("gradients.query", gradients.query, query.size(), dtype);
  expect("gradients.key", gradients.key, key.size(), dtype);
  expect("gradients.value", gradients.value, value.size(), dtype);
  std::vector<float> delta(log_sum.size());
  {
    const ReadFloats results(out);
    const ReadFloats slopes(gradient);
    for (std::size_t row = 0; row < delta.size(); ++row) {
      for (std::size_t k = 0; k < shape.dim; ++k) {
        delta[row] += results.span()[row * shape.dim + k] * slopes.span()[row * shape.dim + k];
      }
    }
  }
  std::array<std::optional<Room>, 6> rooms;
  const ConstAnySpan q = context.to_heads(query, shape.heads, shape.dim, rooms[0]);
  const ConstAnySpan k = context.to_heads(key, shape.key_value_heads, shape.dim, rooms[1]);
  const ConstAnySpan v = context.to_heads(value, shape.key_value_heads, shape.dim, rooms[2]);
  const ConstAnySpan g = context.to_heads(gradient, shape.heads, shape.dim, rooms[3]);
  const auto sums = context.to_heads(log_sum, shape.heads, 1, rooms[4]).as<float>();
  const auto deltas = context.to_heads(delta, shape.heads, 1, rooms[5]).as<float>();
  std::vector<float> dq(q.size());
  std::vector<float> dk(k.size());
  std::vector<float> dv(v.size());
  const ContextJob job = job_of(axes, context, kernel, q, k, v);
  const WideGradients inside{.query = dq, .key = dk, .value = dv};
  if (job.blocks != 0) {
    blocked_backward(job, g, sums.data(), deltas.data(), inside);
  } else if (job.ranks() == 1) {
    kernel.backward(block_of(context, q, k, v), {.gradient = g,
                                                 .log_sum = sums.data(),
                                                 .delta = deltas.data(),
                                                 .query_gradient = dq.data(),
                                                 .key_gradient = dk.data(),
                                                 .value_gradient = dv.data()});
  } else {
    axes.method == ContextMethod::ring
        ? ring_backward(job, g, sums.data(), deltas.data(), inside)
        : gathered_backward(job, g, sums.data(), deltas.data(), inside);
  }
  context.to_rows(dq, shape.heads, shape.dim, gradients.query);
  context.to_rows(dk, shape.key_value_heads, shape.dim, gradients.key);
  context.to_rows(dv, shape.key_value_heads, shape.dim, gradients.value);
}

}  // namespace unisono::parallel
