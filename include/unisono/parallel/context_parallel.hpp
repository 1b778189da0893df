// Context parallelism: attention over a sequence that is sharded over ranks, forward and backward.
//
//   ring        blocks of keys and values circulate while attention is computed; results are
//               merged by their log-sum-exp (Liu, Zaharia and Abbeel, 2023)
//   all_gather  every rank gathers all keys and values (Dubey et al., Llama 3, 2024)
//   Ulysses     sequence -> heads and back by all_to_all (Jacobs et al., 2023)
//   2D          Ulysses over one axis, ring over another (Fang and Zhao, USP, 2024)
//
// The caller provides the kernel. Data is packed: queries and results are [batch, rows, heads,
// dim], keys and values [batch, rows, key_value_heads, dim], log-sum-exps [batch, rows, heads].
//
// The same bits for any number of ranks: without ContextAxes::blocks, ranks merge results over
// their own keys or queries in an order that depends on the layout. With ContextAxes::blocks, the
// kernel sees the keys of one block of the sequence at a time, and the results and gradients of
// blocks are merged by the fixed tree of tree_sum.hpp, on one rank as in a ring or with Ulysses.
//
// Types: queries, keys, values, results and gradients of one call have one type: f32, bf16, f16,
// f8e4m3 or f8e5m2. They are sent in this type, so bf16 needs half the bytes of f32. Log-sum-exps
// and kernel outputs are f32: partial results and gradients are merged and sent in f32, and each
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

// Assigns the positions of a sequence to ranks. With a causal mask later positions cost more:
// zigzag cuts the sequence into 2n parts and gives rank r the parts r and 2n-1-r. striped gives
// each rank every n-th position.
enum class ContextOrder : unsigned char { contiguous, zigzag, striped };

// Local. Returns the positions of a rank in the order in which it stores them. Parts may be uneven.
UNISONO_EXPORT std::vector<std::size_t> context_positions(ContextOrder order, std::size_t length,
                                                          int ranks, int rank);
// Local. Returns the number of query-key pairs that a rank computes under a causal mask.
UNISONO_EXPORT std::size_t causal_work(ContextOrder order, std::size_t length, int ranks, int rank);

// The heads of one attention call on this rank.
struct AttentionShape {
  std::size_t batch = 1;
  std::size_t heads = 1;
  std::size_t key_value_heads = 1;
  std::size_t dim = 1;
  bool causal = true;  // a query sees keys at its own position and before
  // As in HeadShare, for tensor-parallel ranks with unequal numbers of heads. 0: heads /
  // key_value_heads.
  std::size_t heads_per_key = 0;
  std::size_t offset = 0;
  // Returns the key-value head that a query head uses.
  std::size_t key_value_of(std::size_t head) const {
    return (offset + head) / (heads_per_key != 0 ? heads_per_key : heads / key_value_heads);
  }
};

// One block for the kernel: some queries against some keys.
struct AttentionBlock {
  AttentionShape shape = {};
  std::span<const std::size_t> query_positions = {};  // one for each row
  std::span<const std::size_t> key_positions = {};
  ConstAnySpan query = {};  // of the caller's type: query.as<bf16>()
  ConstAnySpan key = {};
  ConstAnySpan value = {};
};
// Further arguments of backward. `delta` is the sum of result * gradient for each [batch, row,
// head].
struct AttentionBackward {
  ConstAnySpan gradient = {};      // of the result
  const float* log_sum = nullptr;  // over all keys, not only this block's
  const float* delta = nullptr;
  float* query_gradient = nullptr;  // the kernel adds to these three
  float* key_gradient = nullptr;
  float* value_gradient = nullptr;
};
// The caller's computations.
struct AttentionKernel {
  // Writes results and log-sum-exps. A row that sees no key gets zeros and the log-sum-exp
  // -infinity.
  std::function<void(const AttentionBlock&, float* out, float* log_sum)> forward = {};
  std::function<void(const AttentionBlock&, const AttentionBackward&)> backward = {};
};

enum class ContextMethod : unsigned char { ring, all_gather };  // see the top of this header

// The axes that a sequence is sharded over. `outer` uses the method; `heads` is the Ulysses axis,
// inside of `outer` (it varies faster). Each of them may be null. If both are null, attention runs
// on one rank.
struct UNISONO_EXPORT ContextAxes {
  Communicator* outer = nullptr;
  Communicator* heads = nullptr;
  ContextMethod method = ContextMethod::ring;
  ContextOrder order = ContextOrder::zigzag;
  // For the same bits under all layouts: the number of equal blocks into which the sequence is cut.
  // Pass the same number under all layouts. 0: no blocks. The kernel's rows are in the order of
  // their positions. In a forward pass a row of its result must not depend on the other queries of
  // the call. In a ring, each of the n ranks of `outer` must have whole blocks: the number of
  // blocks must be a multiple of 2n for zigzag, and of n for contiguous. The backward pass is a
  // ring under either method.
  std::size_t blocks = 0;

  int ranks() const;  // over both axes
  int rank() const;   // among these
  // Local. Returns this rank's positions of a sequence of `length`.
  std::vector<std::size_t> positions(std::size_t length) const;
};

// Collective over the axes. Computes attention. All ranks pass the same shape; `length` is the
// length of the whole sequence. Each call allocates its temporary memory.
// Shapes: query, out: [batch, rows, heads, dim]; key, value: [batch, rows, key_value_heads, dim];
// log_sum: [batch, rows, heads].
// In place: outputs must not overlap any other buffer.
// Errors: usage if the size of the Ulysses axis does not divide the heads and the key-value heads,
// or if ContextAxes::blocks is set and a ring's rank would hold only part of a block; those of
// Communicator::run().
UNISONO_EXPORT void context_attention(const ContextAxes& axes, const AttentionShape& shape,
                                      std::size_t length, const AttentionKernel& kernel,
                                      ConstAnySpan query, ConstAnySpan key, ConstAnySpan value,
                                      AnySpan out, std::span<float> log_sum);

// The outputs of context_attention_backward().
struct ContextGradients {
  AnySpan query;  // all three are outputs
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
// sequence (flash-decoding across ranks). Each rank passes the result over its own keys; all ranks
// get the whole result. A rank without keys passes log-sum-exps of -infinity. The merged result is
// rounded once. Costs one all_gather. For each of the batch * heads rows, a rank sends `dim`
// numbers in the type of `out` and one f32.
// Shapes: out: [batch, heads, dim]; log_sum: [batch, heads].
// In place: always.
// Errors: usage, those of Communicator::run().
UNISONO_EXPORT void merge_decoded(Communicator& axis, const AttentionShape& shape, AnySpan out,
                                  std::span<float> log_sum);

// Local. Merges `other` into `out`, and `other_log_sum` into `log_sum`. `other` and `out` are
// results over different keys.
// Shapes: `rows` rows of `dim` numbers.
// Threads: any.
// Source: online softmax (Milakov and Gimelshein, 2018).
UNISONO_EXPORT void merge_attention(std::size_t rows, std::size_t dim, const float* other,
                                    const float* other_log_sum, float* out, float* log_sum);

}  // namespace unisono::parallel
