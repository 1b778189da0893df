// Tensor, sequence and vocabulary parallelism: the communication before and after matrix products
// that are divided among the ranks of an axis (Shoeybi et al., 2019; Korthikanti et al., 2022). The
// caller computes the matrix products.
//
// Types: all data is packed and has the type f32, bf16, f16, f8e4m3 or f8e5m2. All floats of one
// call have the same type, unless the function's comment says otherwise. Arithmetic is in f32, and
// each result is rounded once. Elements are sent in their own type. The comment of redistribute()
// gives the bytes that a sum over ranks costs.
//
// A column-parallel product shards its outputs. A row-parallel product shards its inputs. A region
// begins with a column-parallel product and ends with a row-parallel product. Inside the region,
// every rank has its part of the features of all tokens, and nothing is sent. The ranks communicate
// when they enter and leave the region:
//
//                    forward                          backward
//   enter_region     none; sequence: all_gather       all_reduce; sequence: reduce_scatter
//   leave_region     all_reduce;                      none; sequence: all_gather
//                    sequence: reduce_scatter
//
// "sequence" stands for sequence parallelism: tokens are sharded outside of the regions, and
// shard_range() gives the rows of each rank.
//
// The same bits for any number of ranks: a row-parallel product is a sum over its inner dimension.
// Cut this dimension into blocks. The number of blocks must not depend on the layout. even_leaves()
// gives the blocks of each rank. sum_of_blocks() multiplies block by block and adds the products
// over a fixed tree. leave_region() and enter_region_backward() have forms that take leaves and
// continue this tree over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/any_span.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/tree_sum.hpp"

namespace unisono::parallel {

// The tokens that enter or leave a region.
struct RegionShape {
  std::size_t rows = 0;  // number of tokens on all ranks
  std::size_t width = 0;
  bool sequence = false;  // tokens are sharded outside of the region
  // Local. Returns the rows that a rank has outside of the region.
  Range outside(const Communicator& axis) const {
    return sequence ? shard_range(rows, axis.size(), axis.rank()) : Range{.count = rows};
  }
};

// Collective. Enter or leave a region, in the forward or the backward pass.
// Shapes: `outside` has outside().count rows. `inside` has all rows; in leave_region() the rows of
// each rank are summands.
// In place: `inside` may be `outside` if tokens are not sharded.
// Errors: usage, those of Communicator::run().
UNISONO_EXPORT void enter_region(Communicator& axis, const RegionShape& shape, ConstAnySpan outside,
                                 AnySpan inside);
UNISONO_EXPORT void enter_region_backward(Communicator& axis, const RegionShape& shape,
                                          ConstAnySpan inside, AnySpan outside);
UNISONO_EXPORT void leave_region(Communicator& axis, const RegionShape& shape, ConstAnySpan inside,
                                 AnySpan outside);
UNISONO_EXPORT void leave_region_backward(Communicator& axis, const RegionShape& shape,
                                          ConstAnySpan outside, AnySpan inside);

// Local. Calls product(block, out) for each block of this rank. product() writes `count` elements
// to `out`: the product of this block. Returns this rank's part of the sum of all products over the
// tree of all blocks.
UNISONO_EXPORT TreeSum
sum_of_blocks(std::size_t count, std::size_t blocks, const Leaves& mine,
              const std::function<void(std::size_t block, std::span<float> out)>& product);

// Collective. As the two functions of these names above, which sum over ranks. These two add in the
// order of the tree of the blocks. `leaves` lists the blocks of each rank; all ranks pass the same
// list. Each result is rounded once to the type of `outside`. Shapes: as above; `inside` has all
// rows, in f32. Errors: usage, those of Communicator::run().
UNISONO_EXPORT void enter_region_backward(Communicator& axis, const RegionShape& shape,
                                          TreeSum inside, std::span<const Leaves> leaves,
                                          AnySpan outside);
UNISONO_EXPORT void leave_region(Communicator& axis, const RegionShape& shape, TreeSum inside,
                                 std::span<const Leaves> leaves, AnySpan outside);

// The attention heads of a rank. With grouped-query attention, several ranks may have a copy of one
// key-value head. The caller then sums the gradients of these copies.
struct HeadShare {
  Range query = {};
  Range key_value = {};
  std::size_t heads_per_key = 1;  // query heads per key-value head, in the whole model
  // Number of query heads on earlier ranks that use this rank's first key-value head.
  std::size_t offset = 0;
  // Returns the local key-value head that the local query head `head` uses. If the number of ranks
  // does not divide the number of key-value heads, head * key_value.count / query.count would be
  // wrong.
  std::size_t key_value_of(std::size_t head) const { return (offset + head) / heads_per_key; }
};
// Local. Returns the heads of a rank. Ranks may have different numbers of heads.
// Errors: usage if the number of key-value heads does not divide the number of heads, if a rank
// would have no heads, or if `even` is true and the number of ranks does not divide the number of
// heads.
UNISONO_EXPORT HeadShare head_share(std::size_t heads, std::size_t key_value_heads, int ranks,
                                    int rank, bool even = false);

// Local. Looks up the rows of a table of `vocabulary` words. If this rank has the row tokens[i],
// out[i] becomes this row; otherwise out[i] becomes zeros. leave_region() sums `out` over the
// ranks, and the sum is the embedding. The sum is exact, because at most one summand is not zero.
UNISONO_EXPORT void vocabulary_embedding(const Communicator& axis, std::size_t vocabulary,
                                         std::size_t width, ConstAnySpan table,
                                         std::span<const std::int32_t> tokens, AnySpan out);
// Local. Adds the gradients of this rank's rows to `table_gradient`, which may be f32 for any type
// of `out_gradient`. If the type of `table_gradient` is narrower than f32, each row is rounded once
// per call.
UNISONO_EXPORT void vocabulary_embedding_backward(const Communicator& axis, std::size_t vocabulary,
                                                  std::size_t width, ConstAnySpan out_gradient,
                                                  std::span<const std::int32_t> tokens,
                                                  AnySpan table_gradient);

// Collective. Computes the cross entropy without gathering logits. For each token, `logits` holds
// the logits of this rank's part of the vocabulary. The call replaces each logit by its gradient
// times `scale`, rounded once. In f8, gradients below 2^-10 (f8e4m3) or 2^-17 (f8e5m2) become zero,
// so choose `scale` accordingly. Costs two all_reduces, of 4 and of 16 bytes per token.
// Exponentials are summed as integers with the unit 2^-(62 - log2(vocabulary)). Such sums are exact
// in any order. The result therefore has the same bits for any number of ranks, and the same bits
// as the result of cross_entropy().
// Shapes: `losses` has one element per token, on all ranks.
// In place: always; the gradients replace `logits`.
// Errors: usage, those of Communicator::run().
UNISONO_EXPORT void vocabulary_cross_entropy(Communicator& axis, std::size_t vocabulary,
                                             AnySpan logits, std::span<const std::int32_t> targets,
                                             float scale, std::span<float> losses);

// Local. Computes the cross entropy of logits over the whole vocabulary. Replaces the logits as
// vocabulary_cross_entropy() does.
// Shapes: `logits` has targets.size() rows of `vocabulary` elements.
// In place: always; the gradients replace `logits`.
// Errors: usage.
UNISONO_EXPORT void cross_entropy(std::size_t vocabulary, AnySpan logits,
                                  std::span<const std::int32_t> targets, float scale,
                                  std::span<float> losses);

// A token and its logit.
struct Candidate {
  float logit = 0;
  std::int32_t token = 0;
};
// Collective. Returns the `count` most likely tokens of one position, the likeliest first. Among
// tokens with equal logits, the smaller token comes first. All ranks get the same result. `logits`
// holds the logits of this rank's part of the vocabulary. Costs one all_gather of `count`
// candidates per rank.
// Errors: usage, those of Communicator::run().
UNISONO_EXPORT std::vector<Candidate> top_candidates(Communicator& axis, std::size_t vocabulary,
                                                     ConstAnySpan logits, std::size_t count);
// Local. Draws a candidate with probability softmax(logit / temperature). With temperature 0,
// returns the likeliest candidate. `uniform` is a random number in [0, 1); all ranks pass the same
// number.
// Errors: usage if there are no candidates.
UNISONO_EXPORT std::int32_t sample(std::span<const Candidate> candidates, double temperature,
                                   double uniform);

}  // namespace unisono::parallel
