#include "sequences.h"

#include <algorithm>
#include <map>
#include <unisono/parallel/placement.hpp>
#include <unisono/tree_sum.hpp>

namespace transformer {
namespace {

namespace up = unisono::parallel;

// Calls sum(TreeSum, leaves of all ranks) to sum over this rank's parts.
template <typename Sum>
void with_sum_of_parts(const Groups& groups, const up::RegionShape& region, std::size_t parts,
                       const PartTerms& terms, const Sum& sum) {
  const std::vector<unisono::Leaves> all = unisono::even_leaves(parts, groups.tp.size());
  const unisono::Leaves mine = all[static_cast<std::size_t>(groups.tp.rank())];
  const std::size_t count = region.rows * region.width;
  unisono::TreeSum inside({.count = count, .leaves = parts, .first = mine.first});
  std::vector<float> part(count);
  for (const unisono::Leaves& node : unisono::subtrees(parts, mine)) {
    sum_parts(region.rows, {.first = node.first - mine.first, .count = node.count}, terms, part);
    inside.add(node, part.data());
  }
  sum(std::move(inside), all);
}

// Returns how many of the model's parts this rank has.
std::size_t parts_here(const Groups& groups, std::size_t parts) {
  return unisono::even_leaves(parts, groups.tp.size())[static_cast<std::size_t>(groups.tp.rank())]
      .count;
}

void add_to(std::span<float> target, std::span<const float> more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    target[i % target.size()] += more[i];
  }
}

// Returns the term dy' x over some rows.
in_order::Term weight_term(std::span<const float> x, std::span<const float> dy, std::size_t rows) {
  return {
      .a = {dy.data(), 1, dy.size() / rows}, .b = {x.data(), x.size() / rows, 1}, .depth = rows};
}

// Adds the gradients of heads that share rows, by the tree over these heads. `out` has the layout
// of `gradient`, of which `heads` are parts.
void add_heads(std::span<const float> x, std::span<const float> dy, std::size_t rows,
               const std::vector<std::span<float>>& heads, std::span<float> gradient,
               std::span<float> out) {
  const std::size_t outputs = dy.size() / rows;
  const std::size_t dim = outputs / heads.size();
  const std::size_t inputs = x.size() / rows;
  for (std::size_t first = 0; first < heads.size();) {
    std::vector<in_order::Term> terms;
    std::size_t head = first;
    for (; head < heads.size() && heads[head].data() == heads[first].data(); ++head) {
      terms.push_back(
          {.a = {dy.data() + head * dim, 1, outputs}, .b = {x.data(), inputs, 1}, .depth = rows});
    }
    const auto at = static_cast<std::size_t>(heads[first].data() - gradient.data());
    in_order::multiply(in_order::Product{
        .rows = dim, .columns = inputs, .terms = terms, .c = &out[at], .c_step = inputs});
    first = head;
  }
}

// Computes the sum over the leaves of a node.
void sum_of_leaves(std::size_t count, std::span<float> out,
                   const std::function<void(std::size_t leaf, std::span<float> out)>& leaf) {
  up::sum_of_blocks(out.size(), count, {.count = count}, leaf).sum(out.data());
}

}  // namespace

PartTerms backward_terms(std::span<const float> w, std::span<const float> dy, std::size_t rows,
                         std::size_t parts) {
  const std::size_t outputs = rows == 0 ? 0 : dy.size() / rows;
  const std::size_t depth = outputs / parts;
  const std::size_t inputs = outputs == 0 ? 0 : w.size() / outputs;
  return [=](std::size_t part, std::vector<in_order::Term>& terms) {
    terms.push_back({.a = {dy.data() + part * depth, outputs, 1},
                     .b = {w.data() + part * depth * inputs, inputs, 1},
                     .depth = depth});
  };
}

void sum_parts(std::size_t rows, const up::Range& parts, const PartTerms& terms,
               std::span<float> out) {
  std::vector<in_order::Term> all;
  for (std::size_t part = parts.first; part < parts.first + parts.count; ++part) {
    terms(part, all);
  }
  const std::size_t columns = rows == 0 ? 0 : out.size() / rows;
  in_order::multiply(in_order::Product{
      .rows = rows, .columns = columns, .terms = all, .c = out.data(), .c_step = columns});
}

void leave(const Groups& groups, const Local& local, std::span<const float> x,
           std::span<const float> w, std::size_t parts, std::span<float> out) {
  const up::RegionShape region = local.region(local.config.width);
  if (!local.layout.same_bits) {
    std::vector<float> part(region.rows * region.width);
    linear(x, w, part, region.rows);
    up::leave_region(groups.tp, region, part, out);
    return;
  }
  const std::size_t inputs = w.size() / region.width;
  const std::size_t depth = inputs / parts_here(groups, parts);
  const PartTerms terms = [&](std::size_t part, std::vector<in_order::Term>& list) {
    list.push_back({.a = {x.data() + part * depth, inputs, 1},
                    .b = {w.data() + part * depth, 1, inputs},
                    .depth = depth});
  };
  if (groups.tp.size() == 1) {
    sum_parts(region.rows, {.count = parts}, terms, out);
    return;
  }
  with_sum_of_parts(groups, region, parts, terms,
                    [&](unisono::TreeSum sum, std::span<const unisono::Leaves> leaves) {
                      up::leave_region(groups.tp, region, std::move(sum), leaves, out);
                    });
}

void enter_backward(const Groups& groups, const Local& local, std::size_t parts,
                    const PartTerms& terms, std::span<float> out) {
  const up::RegionShape region = local.region(local.config.width);
  if (groups.tp.size() == 1) {
    sum_parts(region.rows, {.count = parts}, terms, out);
    return;
  }
  with_sum_of_parts(groups, region, parts, terms,
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
  std::vector<PartTerms> all;
  for (const Flow& flow : flows) {
    all.push_back(backward_terms(flow.w, flow.dy, region.rows, parts_here(groups, parts)));
  }
  enter_backward(
      groups, local, parts,
      [&](std::size_t part, std::vector<in_order::Term>& list) {
        for (const PartTerms& terms : all) {
          terms(part, list);
          list.back().ends_block = &terms == &all.back();
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
  up::redistribute(*groups_.sequences,
                   up::Tensor::of_const(rows, {local_.batch, local_.positions.size(), width}),
                   up::Shard(1), up::Tensor::of(arrived, {mine_.count, length, width}),
                   up::Shard(0));
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
  const std::size_t length = local.config.length;
  const unisono::Leaves mine{.first = leaf_ready.first + sequences.mine().first,
                             .count = sequences.mine().count};
  for (const unisono::Leaves& node : unisono::subtrees(local.config.batch, mine)) {
    const auto of_leaf = [&](std::span<const float> some, std::size_t leaf) {
      const std::vector<float>& all = rows.at(some.data());
      const std::size_t size = all.size() / mine.count;
      return std::span(all).subspan((node.first + leaf - mine.first) * size, size);
    };
    for (const Factors& one : factors) {
      if (one.heads.empty()) {
        std::vector<in_order::Term> terms;
        for (std::size_t leaf = 0; leaf < node.count; ++leaf) {
          terms.push_back(weight_term(of_leaf(one.x, leaf), of_leaf(one.dy, leaf), length));
        }
        const std::size_t outputs = terms.front().a.column;
        const std::size_t inputs = terms.front().b.row;
        in_order::multiply(in_order::Product{.rows = outputs,
                                             .columns = inputs,
                                             .terms = terms,
                                             .c = one.gradient.data(),
                                             .c_step = inputs});
        continue;
      }
      sum_of_leaves(node.count, one.gradient, [&](std::size_t leaf, std::span<float> out) {
        std::ranges::fill(out, 0.0F);
        add_heads(of_leaf(one.x, leaf), of_leaf(one.dy, leaf), length, one.heads, one.gradient,
                  out);
        if (one.is_shared) {
          groups.tp.run({.collective = unisono::Collective::all_reduce,
                         .in = out.data(),
                         .out = out.data(),
                         .count = out.size(),
                         .dtype = unisono::Dtype::f32,
                         .algorithm = "tree_order"});
        }
      });
    }
    for (const Summands& one : summands) {
      sum_of_leaves(node.count, one.gradient, [&](std::size_t leaf, std::span<float> out) {
        std::ranges::fill(out, 0.0F);
        add_to(out, of_leaf(one.rows, leaf));
      });
    }
    leaf_ready.ready(node);
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
