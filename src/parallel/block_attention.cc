#include "parallel/block_attention.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/leaf_tree.h"
#include "parallel/key_ring.h"
#include "unisono/parallel/placement.hpp"

namespace unisono::parallel {
namespace {

// Clamps the number of blocks, so that none is empty.
std::size_t blocks_in(std::size_t length, std::size_t blocks) {
  return std::min(length, blocks);
}

void add_sum(BlockSum& lower, const BlockSum& upper) {
  for (std::size_t i = 0; i < lower.values.size(); ++i) {
    lower.values[i] += upper.values[i];
  }
}

// The packed rows of a block, of each sequence.
class Cut {
 public:
  // `all`: rows per sequence in `rows`.
  Cut(ConstAnySpan rows, std::size_t batch, std::size_t all, const BlockRows& block)
      : dtype_(rows.dtype()) {
    const std::size_t row = batch * all == 0 ? 0 : rows.size() / (batch * all);
    count_ = batch * block.count * row;
    const std::size_t bytes = row * size_of(dtype_);
    const auto* const from = static_cast<const std::byte*>(rows.data());
    for (std::size_t b = 0; b < batch && bytes != 0; ++b) {
      const std::byte* const first = from + (b * all + block.first) * bytes;
      bytes_.insert(bytes_.end(), first, first + block.count * bytes);
    }
  }
  ConstAnySpan span() const { return {bytes_.data(), count_, dtype_}; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t count_ = 0;
  Dtype dtype_;
};

// Writes a block's rows to their places.
void put_rows(std::span<const float> rows, std::size_t batch, std::size_t all,
              const BlockRows& block, std::span<float> whole) {
  const std::size_t width = batch * all == 0 ? 0 : whole.size() / (batch * all);
  for (std::size_t b = 0; b < batch; ++b) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(b * block.count * width),
                block.count * width,
                whole.begin() + static_cast<std::ptrdiff_t>((b * all + block.first) * width));
  }
}

std::span<const std::size_t> places_of(const std::vector<std::size_t>& positions,
                                       const BlockRows& block) {
  return std::span(positions).subspan(block.first, block.count);
}

// Returns true if one of these queries sees one of these keys.
bool is_seen(const AttentionShape& shape, std::span<const std::size_t> queries,
             std::span<const std::size_t> keys) {
  return !queries.empty() && !keys.empty() && (!shape.causal || keys.front() <= queries.back());
}

// The gradients of a block of keys, followed by those of its values, over blocks of queries.
struct KeySums {
  BlockRows rows;
  std::size_t size = 0;  // elements of one sum
  std::vector<BlockSum> sums = {};
};

// Computes the gradients of this rank's queries, and the contribution of these queries to the
// gradients of keys.
class BlockedGradients {
 public:
  BlockedGradients(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                   const float* delta)
      : job_(job), leaves_(blocks_in(job.length, job.blocks)) {
    const std::size_t all = job.mine().size();
    const auto cut = [&](ConstAnySpan rows, const BlockRows& block) {
      return Cut(rows, job.shape.batch, all, block);
    };
    for (const BlockRows& block : block_rows(job.mine(), job.length, job.blocks)) {
      queries_.push_back({.rows = block,
                          .query = cut(job.query, block),
                          .gradient = cut(gradient, block),
                          .log_sum = cut({log_sum, job.rows(), Dtype::f32}, block),
                          .delta = cut({delta, job.rows(), Dtype::f32}, block),
                          .sums = {}});
    }
  }

  // Returns this rank's contribution to the gradients of a rank's keys and values.
  std::vector<KeySums> add(const RingBlock& keys, const AttentionBlock& block) {
    const std::vector<std::size_t>& positions =
        job_.positions[static_cast<std::size_t>(keys.owner)];
    std::vector<KeySums> all;
    for (const BlockRows& rows : block_rows(positions, job_.length, job_.blocks)) {
      const Cut key(block.key, job_.shape.batch, positions.size(), rows);
      const Cut value(block.value, job_.shape.batch, positions.size(), rows);
      KeySums one{.rows = rows, .size = 2 * key.span().size()};
      for (Queries& queries : queries_) {
        BlockSum of_query{.first = rows.number,
                          .end = rows.number + 1,
                          .values = std::vector<float>(queries.query.span().size())};
        BlockSum of_key{.first = queries.rows.number,
                        .end = queries.rows.number + 1,
                        .values = std::vector<float>(one.size)};
        const auto query_places = places_of(job_.mine(), queries.rows);
        const auto key_places = places_of(positions, rows);
        if (is_seen(job_.shape, query_places, key_places)) {
          job_.kernel.backward({.shape = job_.shape,
                                .query_positions = query_places,
                                .key_positions = key_places,
                                .query = queries.query.span(),
                                .key = key.span(),
                                .value = value.span()},
                               {.gradient = queries.gradient.span(),
                                .log_sum = queries.log_sum.span().as<float>().data(),
                                .delta = queries.delta.span().as<float>().data(),
                                .query_gradient = of_query.values.data(),
                                .key_gradient = of_key.values.data(),
                                .value_gradient = of_key.values.data() + key.span().size()});
        }
        insert_node(queries.sums, std::move(of_query), leaves_, add_sum);
        insert_node(one.sums, std::move(of_key), leaves_, add_sum);
      }
      all.push_back(std::move(one));
    }
    return all;
  }

  // Adds the contributions of the earlier ranks to the gradients of the owner's keys, in the format
  // of joined(). `visits`: the number of these ranks, starting with the owner.
  void merge(std::vector<KeySums>& all, int owner, int visits,
             std::span<const float> arrived) const {
    const std::vector<BlockSum> nodes = visited(owner, visits);
    for (KeySums& one : all) {
      for (const BlockSum& node : nodes) {
        insert_node(
            one.sums,
            {.first = node.first,
             .end = node.end,
             .values = {arrived.begin(), arrived.begin() + static_cast<std::ptrdiff_t>(one.size)}},
            leaves_, add_sum);
        arrived = arrived.subspan(one.size);
      }
    }
  }
  std::vector<float> room(int owner, int visits) const {
    return std::vector<float>(visited(owner, visits).size() * 2 * job_.key_count(owner));
  }

  // REQUIRES: all keys have been added.
  void write(std::span<float> query) const {
    for (const Queries& queries : queries_) {
      put_rows(queries.sums.front().values, job_.shape.batch, job_.mine().size(), queries.rows,
               query);
    }
  }

 private:
  struct Queries {
    BlockRows rows;
    Cut query, gradient, log_sum, delta;
    std::vector<BlockSum> sums;  // nodes over the key blocks
  };

  // Returns the nodes, without values, over the query blocks of the first `visits` ranks that the
  // owner's keys visit.
  std::vector<BlockSum> visited(int owner, int visits) const {
    std::vector<BlockSum> nodes;
    for (int i = 0; i < visits; ++i) {
      const auto rank = static_cast<std::size_t>((owner + i) % job_.ranks());
      for (const BlockRows& block : block_rows(job_.positions[rank], job_.length, job_.blocks)) {
        insert_node(nodes, {.first = block.number, .end = block.number + 1}, leaves_, add_sum);
      }
    }
    return nodes;
  }

  const ContextJob& job_;
  std::size_t leaves_;
  std::vector<Queries> queries_;
};

std::vector<float> joined(const std::vector<KeySums>& all) {
  std::vector<float> values;
  for (const KeySums& one : all) {
    for (const BlockSum& sum : one.sums) {
      values.insert(values.end(), sum.values.begin(), sum.values.end());
    }
  }
  return values;
}

}  // namespace

std::vector<BlockRows> block_rows(const std::vector<std::size_t>& positions, std::size_t length,
                                  std::size_t blocks) {
  std::vector<BlockRows> rows;
  const auto count = static_cast<int>(blocks_in(length, blocks));
  std::size_t first = 0;
  for (int number = 0; number < count; ++number) {
    const Range block = shard_range(length, count, number);
    const auto end =
        std::lower_bound(positions.begin(), positions.end(), block.first + block.count);
    const auto has = static_cast<std::size_t>(end - positions.begin()) - first;
    if (has != 0 && has != block.count) {
      throw Error(ErrorCode::usage,
                  "context attention: a rank has " + std::to_string(has) + " of the " +
                      std::to_string(block.count) + " positions of block " +
                      std::to_string(number) + " of " + std::to_string(blocks) +
                      "\nmake ContextAxes::blocks a multiple of the ranks, or of twice the ranks "
                      "for zigzag; stripes have no blocks: pass the communicator of all axes as "
                      "ContextAxes::heads");
    }
    if (has != 0) {
      rows.push_back({.number = static_cast<std::size_t>(number), .first = first, .count = has});
    }
    first += has;
  }
  return rows;
}

void BlockedResult::add(const std::vector<std::size_t>& positions, ConstAnySpan key,
                        ConstAnySpan value) {
  const std::size_t batch = job_.shape.batch;
  const std::size_t results = job_.query_count();
  const auto merge = [&](BlockSum& lower, const BlockSum& upper) {
    merge_attention(job_.rows(), job_.shape.dim, upper.values.data(), upper.values.data() + results,
                    lower.values.data(), lower.values.data() + results);
  };
  for (const BlockRows& block : block_rows(positions, job_.length, job_.blocks)) {
    BlockSum sum{.first = block.number,
                 .end = block.number + 1,
                 .values = std::vector<float>(results + job_.rows())};
    if (is_seen(job_.shape, job_.mine(), places_of(positions, block))) {
      const Cut keys(key, batch, positions.size(), block);
      const Cut values(value, batch, positions.size(), block);
      job_.kernel.forward({.shape = job_.shape,
                           .query_positions = job_.mine(),
                           .key_positions = places_of(positions, block),
                           .query = job_.query,
                           .key = keys.span(),
                           .value = values.span()},
                          sum.values.data(), sum.values.data() + results);
    } else {
      std::fill(sum.values.begin() + static_cast<std::ptrdiff_t>(results), sum.values.end(),
                -std::numeric_limits<float>::infinity());
    }
    insert_node(sums_, std::move(sum), blocks_in(job_.length, job_.blocks), merge);
  }
}

void BlockedResult::write(float* out, float* log_sum) const {
  if (!sums_.empty()) {
    const float* const values = sums_.front().values.data();
    std::copy_n(values, job_.query_count(), out);
    std::copy_n(values + job_.query_count(), job_.rows(), log_sum);
  }
}

void blocked_forward(const ContextJob& job, float* out, float* log_sum) {
  const KeyRing ring(job);
  BlockedResult result(job);
  ring.visit_all([&](const RingBlock& here) {
    const AttentionBlock block = ring.block(here);
    result.add(job.positions[static_cast<std::size_t>(here.owner)], block.key, block.value);
  });
  result.write(out, log_sum);
}

// The sums of a block's gradients follow the block around the ring, one step behind, until they
// reach its owner.
void blocked_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                      const float* delta, const WideGradients& gradients) {
  const KeyRing ring(job);
  BlockedGradients all(job, gradient, log_sum, delta);
  RingBlock here = ring.first();
  std::vector<KeySums> home;  // from the first step: the rows of this rank's keys
  std::vector<float> passing;
  Request passed;
  for (int step = 0; step < ring.ranks(); ++step) {
    const bool last = step + 1 == ring.ranks();
    RingBlock coming = last ? RingBlock{} : ring.room(ring.owner(step + 1));
    Request received = last ? Request() : ring.receive(coming.data, kBlockTag);
    Request sent = last ? Request() : ring.send(here.data, kBlockTag);
    std::vector<float> arriving = all.room(here.owner, step);
    Request arrived = step == 0 ? Request() : ring.receive(arriving, kGradientTag);
    std::vector<KeySums> sums = all.add(here, ring.block(here));
    if (step != 0) {
      arrived.wait();
      passed.wait();
      all.merge(sums, here.owner, step, arriving);
    }
    passing = joined(sums);
    if (step == 0) {
      home = std::move(sums);
    }
    if (ring.ranks() > 1) {
      passed = ring.send(passing, kGradientTag);
    }
    if (!last) {
      received.wait();
      sent.wait();
      here = std::move(coming);
    }
  }
  all.write(gradients.query);
  if (ring.ranks() > 1) {
    // The last rank that a block visits is the one before its owner.
    std::vector<float> arriving = all.room(job.rank(), ring.ranks());
    ring.receive(arriving, kGradientTag).wait();
    passed.wait();
    passing = std::move(arriving);
  }
  std::span<const float> sums = passing;
  for (const KeySums& one : home) {
    const std::size_t half = one.size / 2;
    put_rows(sums.first(half), job.shape.batch, job.mine().size(), one.rows, gradients.key);
    put_rows(sums.subspan(half, half), job.shape.batch, job.mine().size(), one.rows,
             gradients.value);
    sums = sums.subspan(one.size);
  }
}

}  // namespace unisono::parallel
