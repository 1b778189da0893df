// Context parallelism: attention over a sequence that is sharded over ranks, forward and backward.
//
//   ring        keys and values circulate in blocks while the ranks compute attention. The results
//               of the blocks are merged by their log-sum-exp (Liu, Zaharia and Abbeel, 2023)
//   all_gather  every rank gathers all keys and values (Dubey et al., Llama 3, 2024)
//   Ulysses     all_to_all converts shards of the sequence to shards of the heads, and back
//               (Jacobs et al., 2023)
//   2D          Ulysses over one axis, ring over another (Fang and Zhao, USP, 2024)
//
// The caller provides the kernel. All data is packed. Queries and results are [batch, rows, heads,
// dim], keys and values are [batch, rows, key_value_heads, dim], and log-sum-exps are [batch, rows,
// heads].
//
// The same bits for any number of ranks: set ContextAxes::blocks. The kernel then sees the keys of
// one block of the sequence at a time. The fixed tree of tree_sum.hpp merges the results and
// gradients of the blocks, in the same way on one rank, in a ring and with Ulysses. Without
// ContextAxes::blocks, the order in which results are merged depends on the layout.
//
// Types: queries, keys, values, results and gradients of one call have one type: f32, bf16, f16,
// f8e4m3 or f8e5m2. They are sent in this type, so bf16 needs half the bytes of f32. Log-sum-exps
// and kernel outputs are f32. Partial results and gradients are merged and sent in f32, and each
// result is rounded once.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/any_span.hpp"

namespace unisono::parallel {

// Assigns the positions of a sequence to n ranks. With a causal mask, later positions cost more.
// zigzag cuts the sequence into 2n parts and gives rank r the parts r and 2n-1-r. striped gives
// each rank every n-th position.
enum class ContextOrder : unsigned char { contiguous, zigzag, striped };

// Local. Returns the positions of a rank in the order in which it stores them. Parts may be uneven.
UNISONO_EXPORT std::vector<std::size_t> context_positions(ContextOrder order, std::size_t length,
                                                          int ranks, int rank);
// Local. Returns the number of query-key pairs that a rank computes under a causal mask.
UNISONO_EXPORT std::size_t causal_work(ContextOrder order, std::size_t length, int ranks, int rank);

// The shape of one attention call on this rank.
struct AttentionShape {
  std::size_t batch = 1;
  std::size_t heads = 1;
  std::size_t key_value_heads = 1;
  std::size_t dim = 1;
  bool causal = true;  // a query sees only keys at its own and earlier positions
  // heads_per_key and offset are as in HeadShare, for tensor-parallel ranks with unequal numbers of
  // heads. If heads_per_key is 0, heads / key_value_heads is used.
  std::size_t heads_per_key = 0;
  std::size_t offset = 0;
  // Returns the key-value head that a query head uses.
  std::size_t key_value_of(std::size_t head) const {
    return (offset + head) / (heads_per_key != 0 ? heads_per_key : heads / key_value_heads);
  }
};

// The input of one kernel call: some queries and some keys.
struct AttentionBlock {
  AttentionShape shape = {};
  std::span<const std::size_t> query_positions = {};  // one per row
  std::span<const std::size_t> key_positions = {};
  ConstAnySpan query = {};  // has the caller's type: query.as<bf16>()
  ConstAnySpan key = {};
  ConstAnySpan value = {};
};
// Further arguments of `backward`. For each [batch, row, head], `delta` is the sum of result *
// gradient over `dim`.
struct AttentionBackward {
  ConstAnySpan gradient = {};      // gradient of the result
  const float* log_sum = nullptr;  // of the forward pass, over all keys and not only this block
  const float* delta = nullptr;
  float* query_gradient = nullptr;  // the kernel adds to these three
  float* key_gradient = nullptr;
  float* value_gradient = nullptr;
};
// The caller's kernels.
struct AttentionKernel {
  // Writes results and log-sum-exps. For a row that sees no key, writes zeros and the log-sum-exp
  // -infinity.
  std::function<void(const AttentionBlock&, float* out, float* log_sum)> forward = {};
  std::function<void(const AttentionBlock&, const AttentionBackward&)> backward = {};
};

enum class ContextMethod : unsigned char { ring, all_gather };  // see the top of this header

// The axes that a sequence is sharded over. `outer` uses `method`. `heads` is the Ulysses axis; it
// is inside of `outer`, so it varies faster. Each axis may be null. If both are null, attention
// runs on one rank.
struct UNISONO_EXPORT ContextAxes {
  Communicator* outer = nullptr;
  Communicator* heads = nullptr;
  ContextMethod method = ContextMethod::ring;
  ContextOrder order = ContextOrder::zigzag;
  // The number of equal blocks into which the sequence is cut; 0: no blocks. If this number is the
  // same under all layouts, the results have the same bits under all layouts.
  // Requirements: the kernel receives rows in the order of their positions; in a forward pass, each
  // row of its result must not depend on the other queries of the call. In a ring, each of the n
  // ranks of `outer` must have whole blocks: the number of blocks must be a multiple of 2n for
  // zigzag, and of n for contiguous. This also applies to every backward pass, which is a ring
  // under either method.
  std::size_t blocks = 0;

  int ranks() const;  // number of ranks on both axes
  int rank() const;   // this rank among these ranks
  // Local. Returns this rank's positions of a sequence of `length`.
  std::vector<std::size_t> positions(std::size_t length) const;
};

// Collective over the axes. Computes attention. All ranks pass the same shape; `length` is the
// length of the whole sequence. Each call allocates its temporary memory.
// Shapes: query, out: [batch, rows, heads, dim]; key, value: [batch, rows, key_value_heads, dim];
// log_sum: [batch, rows, heads].
// In place: outputs must not overlap any other buffer.
// Errors: usage if the size of the Ulysses axis does not divide the heads and the key-value heads;
// if all_gather or Ulysses is used and the number of ranks does not divide `length`; or if
// ContextAxes::blocks is set and a rank of a ring would hold part of a block. Those of
// Communicator::run().
UNISONO_EXPORT void context_attention(const ContextAxes& axes, const AttentionShape& shape,
                                      std::size_t length, const AttentionKernel& kernel,
                                      ConstAnySpan query, ConstAnySpan key, ConstAnySpan value,
                                      AnySpan out, std::span<float> log_sum);

// The outputs of context_attention_backward().
struct ContextGradients {
  AnySpan query;  // the call writes all three
  AnySpan key;
  AnySpan value;
};
// Collective over the axes. Computes the gradients. `out` and `log_sum` come from the forward pass.
// Shapes, in-place rule and errors are those of context_attention().
UNISONO_EXPORT void context_attention_backward(const ContextAxes& axes, const AttentionShape& shape,
                                               std::size_t length, const AttentionKernel& kernel,
                                               ConstAnySpan query, ConstAnySpan key,
                                               ConstAnySpan value, ConstAnySpan out,
                                               std::span<const float> log_sum,
                                               ConstAnySpan gradient,
                                               const ContextGradients& gradients);

// Collective. Merges partial attention results when decoding with a cache that is sharded over the
// sequence (flash-decoding across ranks). Each rank passes the result over its own keys, and all
// ranks get the whole result. A rank without keys passes log-sum-exps of -infinity. The merged
// result is rounded once. Costs one all_gather: for each of the batch * heads rows, a rank sends
// `dim` numbers in the type of `out` and one f32.
// Shapes: out: [batch, heads, dim]; log_sum: [batch, heads].
// In place: always.
// Errors: usage, those of Communicator::run().
UNISONO_EXPORT void merge_decoded(Communicator& axis, const AttentionShape& shape, AnySpan out,
                                  std::span<float> log_sum);

// Local. Merges `other` into `out`, and `other_log_sum` into `log_sum`. `other` and `out` are
// results of the same queries over different keys.
// Shapes: `rows` rows of `dim` numbers.
// Threads: any.
// Source: online softmax (Milakov and Gimelshein, 2018).
UNISONO_EXPORT void merge_attention(std::size_t rows, std::size_t dim, const float* other,
                                    const float* other_log_sum, float* out, float* log_sum);

}  // namespace unisono::parallel
