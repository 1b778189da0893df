// Tensor, sequence and vocabulary parallelism: the pieces around matrix products that the ranks of
// one axis share (Shoeybi et al., 2019; Korthikanti et al., 2022). All data is f32 and packed; the
// matrix products themselves are the caller's.
//
// A column-parallel product cuts the outputs, a row-parallel one the inputs. Between the two every
// rank has its part of the features of all tokens, and nothing is sent. Before and after:
//
//                    forward                          backward
//   enter_region     nothing; sequence: all_gather     all_reduce; sequence: reduce_scatter
//   leave_region     all_reduce; s.: reduce_scatter    nothing; sequence: all_gather
//
// With sequence parallelism tokens are cut outside of such regions, by shard_range() of the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/placement.hpp"

namespace unisono::parallel {

struct RegionShape {
  std::size_t rows = 0;  // tokens, of all ranks
  std::size_t width = 0;
  bool sequence = false;  // tokens are cut outside of the region
  // The rows that a rank has outside of the region.
  Range outside(const Communicator& axis) const {
    return sequence ? shard_range(rows, axis.size(), axis.rank()) : Range{.count = rows};
  }
};

// `outside`: outside().count rows; `inside`: all rows. `inside` may be `outside` where tokens are
// not cut. Errors: usage, as of Communicator::run().
UNISONO_EXPORT void enter_region(Communicator& axis, const RegionShape& shape,
                                 std::span<const float> outside, std::span<float> inside);
UNISONO_EXPORT void enter_region_backward(Communicator& axis, const RegionShape& shape,
                                          std::span<const float> inside, std::span<float> outside);
// `inside` are summands.
UNISONO_EXPORT void leave_region(Communicator& axis, const RegionShape& shape,
                                 std::span<const float> inside, std::span<float> outside);
UNISONO_EXPORT void leave_region_backward(Communicator& axis, const RegionShape& shape,
                                          std::span<const float> outside, std::span<float> inside);

// Which attention heads a rank computes. With fewer key-value heads than ranks (grouped-query
// attention) several ranks have a copy of one, whose gradients have to be summed.
struct HeadShare {
  Range query = {};
  Range key_value = {};
};
// Heads may be uneven. Errors: usage, where key-value heads do not divide the heads, or a rank
// would have none; `even` also refuses heads that the ranks cannot divide.
UNISONO_EXPORT HeadShare head_share(std::size_t heads, std::size_t key_value_heads, int ranks,
                                    int rank, bool even = false);

// The rows of a table of `vocabulary` words that this rank has, summed up: out[i] is
// table[tokens[i]] where that row is here, else zeros. The sum over the ranks is the embedding:
// leave_region().
UNISONO_EXPORT void vocabulary_embedding(const Communicator& axis, std::size_t vocabulary,
                                         std::size_t width, std::span<const float> table,
                                         std::span<const std::int32_t> tokens,
                                         std::span<float> out);
// Adds the gradients of the rows that are here.
UNISONO_EXPORT void vocabulary_embedding_backward(const Communicator& axis, std::size_t vocabulary,
                                                  std::size_t width,
                                                  std::span<const float> out_gradient,
                                                  std::span<const std::int32_t> tokens,
                                                  std::span<float> table_gradient);

// Cross entropy without gathering logits. `logits`: for each token this rank's part of the
// vocabulary; they become their gradients times `scale`. `losses`: of each token, on all ranks.
// Cost: two all_reduces, of one and of two numbers a token.
UNISONO_EXPORT void vocabulary_cross_entropy(Communicator& axis, std::size_t vocabulary,
                                             std::span<float> logits,
                                             std::span<const std::int32_t> targets, float scale,
                                             std::span<float> losses);

struct Candidate {
  float logit = 0;
  std::int32_t token = 0;
};
// The `count` most likely tokens, the likeliest first (of equal ones the lower token), the same on
// all ranks, from this rank's part of the logits of one place. Cost: one all_gather of `count`
// candidates a rank.
UNISONO_EXPORT std::vector<Candidate> top_candidates(Communicator& axis, std::size_t vocabulary,
                                                     std::span<const float> logits,
                                                     std::size_t count);
// Draws one of them with softmax(logit / temperature). `uniform`: a number in [0, 1), the same on
// all ranks. temperature 0: the likeliest. Errors: usage, for no candidates.
UNISONO_EXPORT std::int32_t sample(std::span<const Candidate> candidates, double temperature,
                                   double uniform);

}  // namespace unisono::parallel
