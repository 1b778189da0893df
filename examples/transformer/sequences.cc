#include "sequences.h"

#include <algorithm>
#include <map>
#include <unisono/parallel/placement.hpp>
#include <unisono/tree_sum.hpp>

namespace transformer {
namespace {

namespace up = unisono::parallel;

// Sums over the parts that this rank has; calls sum(TreeSum, leaves of all ranks).
template <typename Sum>
void with_sum_of_parts(const Groups& groups, std::size_t count, std::size_t parts,
                       const PartProduct& product, const Sum& sum) {
  const std::vector<unisono::Leaves> all = unisono::even_leaves(parts, groups.tp.size());
  const unisono::Leaves mine = all[static_cast<std::size_t>(groups.tp.rank())];
  sum(up::sum_of_blocks(count, parts, mine,
                        [&](std::size_t block, std::span<float> out) {
                          product({.index = block - mine.first, .parts = mine.count}, out);
                        }),
      all);
}

void add_to(std::span<float> target, std::span<const float> more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    target[i % target.size()] += more[i];
  }
}

// The gradients of heads that share rows, by the tree over these heads.
void add_heads(std::span<const float> x, std::span<const float> dy, std::size_t rows,
               const std::vector<std::span<float>>& heads) {
  const std::size_t outputs = dy.size() / rows;
  const std::size_t dim = outputs / heads.size();
  const std::size_t inputs = x.size() / rows;
  std::vector<float> whole(dim * inputs);
  for (std::size_t first = 0; first < heads.size();) {
    std::size_t end = first + 1;
    while (end < heads.size() && heads[end].data() == heads[first].data()) {
      ++end;
    }
    up::sum_of_blocks(whole.size(), end - first, {.count = end - first},
                      [&](std::size_t head, std::span<float> out) {
                        multiply({.m = dim,
                                  .n = inputs,
                                  .k = rows,
                                  .a = dy.data() + (first + head) * dim,
                                  .b = x.data(),
                                  .c = out.data(),
                                  .transpose_a = true,
                                  .in_order = true,
                                  .a_step = outputs});
                      })
        .sum(whole.data());
    add_to(heads[first], whole);
    first = end;
  }
}

}  // namespace

void leave(const Groups& groups, const Local& local, std::span<const float> x,
           std::span<const float> w, std::size_t parts, std::span<float> out) {
  const up::RegionShape region = local.region(local.config.width);
  const std::size_t count = region.rows * region.width;
  if (!local.layout.same_bits) {
    std::vector<float> part(count);
    linear(x, w, part, region.rows);
    up::leave_region(groups.tp, region, part, out);
    return;
  }
  with_sum_of_parts(
      groups, count, parts,
      [&](const Part& part, std::span<float> y) { linear_part(x, w, y, region.rows, part); },
      [&](unisono::TreeSum sum, std::span<const unisono::Leaves> leaves) {
        up::leave_region(groups.tp, region, std::move(sum), leaves, out);
      });
}

void enter_backward(const Groups& groups, const Local& local, std::size_t parts,
                    const PartProduct& product, std::span<float> out) {
  const up::RegionShape region = local.region(local.config.width);
  with_sum_of_parts(groups, region.rows * region.width, parts, product,
                    [&](unisono::TreeSum sum, std::span<const unisono::Leaves> leaves) {
                      up::enter_region_backward(groups.tp, region, std::move(sum), leaves, out);
                    });
}

void enter_backward(const Groups& groups, const Local& local, const std::vector<Flow>& flows,
                    std::size_t parts, std::span<float> out) {
  const up::RegionShape region = local.region(local.config.width);
  if (!local.layout.same_bits) {
    std::vector<float> din(region.rows * region.width);
    for (const Flow& flow : flows) {
      linear_backward_input(flow.w, flow.dy, din, region.rows, &flow != &flows.front());
    }
    up::enter_region_backward(groups.tp, region, din, out);
    return;
  }
  enter_backward(
      groups, local, parts,
      [&](const Part& part, std::span<float> dx) {
        for (const Flow& flow : flows) {
          linear_part_backward_input(flow.w, flow.dy, dx, region.rows, part,
                                     &flow != &flows.front());
        }
      },
      out);
}

std::vector<float> all_rows(const Groups& groups, const Local& local, std::span<const float> rows,
                            std::size_t width) {
  if (!local.layout.sequence || groups.tp.size() == 1) {
    return {rows.begin(), rows.end()};
  }
  std::vector<float> all(local.rows() * width);
  up::redistribute(groups.tp, up::Tensor::of_const(rows, {rows.size() / width, width}),
                   up::Shard(0), up::Tensor::of(all, {local.rows(), width}), up::Replicate());
  return all;
}

Sequences::Sequences(const Groups& groups, const Local& local)
    : groups_(groups),
      local_(local),
      mine_(up::shard_range(local.batch, groups.context.ranks(), groups.context.rank())) {}

template <typename T>
std::vector<T> Sequences::exchange(std::span<const T> rows) const {
  const up::ContextAxes& axes = groups_.context;
  if (axes.ranks() == 1) {
    return {rows.begin(), rows.end()};
  }
  const std::size_t width = rows.size() / local_.rows();
  const std::size_t length = local_.config.length;
  std::vector<T> arrived(mine_.count * length * width);
  up::redistribute(
      *axes.heads, up::Tensor::of_const(rows, {local_.batch, local_.positions.size(), width}),
      up::Shard(1), up::Tensor::of(arrived, {mine_.count, length, width}), up::Shard(0));
  std::vector<T> sorted(arrived.size());
  std::size_t row = 0;
  for (int rank = 0; rank < axes.ranks(); ++rank) {
    for (const std::size_t position :
         up::context_positions(axes.order, length, axes.ranks(), rank)) {
      for (std::size_t sequence = 0; sequence < mine_.count; ++sequence) {
        std::copy_n(&arrived[(sequence * length + row) * width], width,
                    &sorted[(sequence * length + position) * width]);
      }
      ++row;
    }
  }
  return sorted;
}
template std::vector<float> Sequences::exchange(std::span<const float> rows) const;
template std::vector<std::int32_t> Sequences::exchange(std::span<const std::int32_t> rows) const;

void add_gradients(const Groups& groups, const Local& local, const std::vector<Factors>& factors,
                   const std::vector<Summands>& summands, const LeafReady& leaf_ready) {
  if (!local.layout.same_bits) {
    for (const Factors& one : factors) {
      linear_backward_weight(one.x, one.dy, one.gradient, local.rows());
    }
    return;
  }
  const Sequences sequences(groups, local);
  std::map<const float*, std::vector<float>> rows;
  const auto add = [&](std::span<const float> some) {
    if (!rows.contains(some.data())) {
      rows[some.data()] = sequences.exchange(some);
    }
  };
  for (const Factors& one : factors) {
    add(one.x);
    add(one.dy);
  }
  for (const Summands& one : summands) {
    const std::vector<float> all = all_rows(groups, local, one.rows, one.gradient.size());
    rows[one.rows.data()] = sequences.exchange(std::span<const float>(all));
  }
  for (std::size_t i = 0; i < sequences.mine().count; ++i) {
    const auto of_sequence = [&](std::span<const float> some) {
      const std::vector<float>& all = rows.at(some.data());
      const std::size_t size = all.size() / sequences.mine().count;
      return std::span(all).subspan(i * size, size);
    };
    for (const Factors& one : factors) {
      const std::size_t length = local.config.length;
      if (one.heads.empty()) {
        linear_backward_weight(of_sequence(one.x), of_sequence(one.dy), one.gradient, length, true);
      } else {
        add_heads(of_sequence(one.x), of_sequence(one.dy), length, one.heads);
      }
      if (one.is_shared) {
        groups.tp.run({.collective = unisono::Collective::all_reduce,
                       .in = one.gradient.data(),
                       .out = one.gradient.data(),
                       .count = one.gradient.size(),
                       .dtype = unisono::Dtype::f32,
                       .algorithm = "tree_order"});
      }
    }
    for (const Summands& one : summands) {
      add_to(one.gradient, of_sequence(one.rows));
    }
    leaf_ready(sequences.mine().first + i);
  }
}

std::span<float> gain_gradient(const Local& local, std::span<float> gradient,
                               std::vector<float>& rows, std::size_t size) {
  if (!local.layout.same_bits) {
    return gradient;
  }
  rows.assign(size, 0.0F);
  return rows;
}

}  // namespace transformer
