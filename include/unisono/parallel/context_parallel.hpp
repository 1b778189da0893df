// Context parallelism: attention over a sequence that is cut over ranks, forward and backward.
//
//   ring        blocks of keys and values travel around while attention is computed; results are
//               merged by their log-sum-exp (Liu, Zaharia and Abbeel, 2023)
//   all_gather  every rank gathers all keys and values (Dubey et al., Llama 3, 2024)
//   Ulysses     sequence -> heads and back by all_to_all (Jacobs et al., 2023)
//   2D          Ulysses over one axis, ring over another (Fang and Zhao, USP, 2024)
//
// The kernel is the caller's. Data is packed: queries and results are [batch, rows, heads, dim],
// keys and values [batch, rows, key_value_heads, dim], log-sum-exps [batch, rows, heads].
//
// Types: queries, keys, values, results and gradients of one call have one type: f32, bf16, f16,
// f8e4m3 or f8e5m2. They travel in it, so bf16 needs half the bytes of f32. Log-sum-exps and what a
// kernel writes are f32: partial results and gradients are merged and travel in f32, and each
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

// Which places of the sequence a rank has. With a causal mask later places are more work: zigzag
// gives a rank the parts r and 2n-1-r of 2n, striped every n-th place.
enum class ContextOrder : unsigned char { contiguous, zigzag, striped };

// In the order in which the rank has them. Parts may be uneven.
UNISONO_EXPORT std::vector<std::size_t> context_positions(ContextOrder order, std::size_t length,
                                                          int ranks, int rank);
// Pairs of query and key that a rank computes under a causal mask.
UNISONO_EXPORT std::size_t causal_work(ContextOrder order, std::size_t length, int ranks, int rank);

struct AttentionShape {
  std::size_t batch = 1;
  std::size_t heads = 1;
  std::size_t key_value_heads = 1;
  std::size_t dim = 1;
  bool causal = true;  // a query sees keys at its own place and before
  // As in HeadShare, if tensor-parallel ranks have unequal numbers of heads. 0 means heads /
  // key_value_heads.
  std::size_t heads_per_key = 0;
  std::size_t offset = 0;
  // The key-value head that a query head uses.
  std::size_t key_value_of(std::size_t head) const {
    return (offset + head) / (heads_per_key != 0 ? heads_per_key : heads / key_value_heads);
  }
};

// One block for the kernel: some queries against some keys.
struct AttentionBlock {
  AttentionShape shape = {};
  std::span<const std::size_t> query_positions = {};  // of each row
  std::span<const std::size_t> key_positions = {};
  ConstAnySpan query = {};  // of the caller's type: query.as<bf16>()
  ConstAnySpan key = {};
  ConstAnySpan value = {};
};
// What backward gets besides. `delta`: of each [batch, row, head] the sum of result * its gradient.
struct AttentionBackward {
  ConstAnySpan gradient = {};      // of the result
  const float* log_sum = nullptr;  // over all keys, not of this block alone
  const float* delta = nullptr;
  float* query_gradient = nullptr;  // these three are added to
  float* key_gradient = nullptr;
  float* value_gradient = nullptr;
};
struct AttentionKernel {
  // Writes results and log-sum-exps; a row that sees no key has the log-sum-exp -infinity and
  // zeros.
  std::function<void(const AttentionBlock&, float* out, float* log_sum)> forward = {};
  std::function<void(const AttentionBlock&, const AttentionBackward&)> backward = {};
};

enum class ContextMethod : unsigned char { ring, all_gather };

// How a sequence lies over ranks. `outer` has the method; `heads` is the axis of Ulysses, inside of
// it (the one that varies faster). Either may be null: both null is attention on one rank.
struct UNISONO_EXPORT ContextAxes {
  Communicator* outer = nullptr;
  Communicator* heads = nullptr;
  ContextMethod method = ContextMethod::ring;
  ContextOrder order = ContextOrder::zigzag;

  int ranks() const;
  int rank() const;
  // The places of this rank, of a sequence of that length.
  std::vector<std::size_t> positions(std::size_t length) const;
};

// Reusable memory is none: each call allocates what it needs. All ranks of the axes call it, with
// the same shape. `length`: of the whole sequence. Errors: usage, for heads that the axis of
// Ulysses cannot divide; as of Communicator::run().
UNISONO_EXPORT void context_attention(const ContextAxes& axes, const AttentionShape& shape,
                                      std::size_t length, const AttentionKernel& kernel,
                                      ConstAnySpan query, ConstAnySpan key, ConstAnySpan value,
                                      AnySpan out, std::span<float> log_sum);

struct ContextGradients {
  AnySpan query;  // all three are written
  AnySpan key;
  AnySpan value;
};
// `out` and `log_sum`: of the forward pass.
UNISONO_EXPORT void context_attention_backward(const ContextAxes& axes, const AttentionShape& shape,
                                               std::size_t length, const AttentionKernel& kernel,
                                               ConstAnySpan query, ConstAnySpan key,
                                               ConstAnySpan value, ConstAnySpan out,
                                               std::span<const float> log_sum,
                                               ConstAnySpan gradient,
                                               const ContextGradients& gradients);

// Decoding with a cache that is sharded over the sequence (flash-decoding across ranks): each rank
// computes the part of its keys, [batch, heads, dim] and [batch, heads], and all get the whole. One
// all_gather of batch * heads * (dim + 1) numbers per rank: `dim` of the type of `out`, and an f32.
// A rank without keys passes log-sum-exps of -infinity. The whole is rounded once more.
UNISONO_EXPORT void merge_decoded(Communicator& axis, const AttentionShape& shape, AnySpan out,
                                  std::span<float> log_sum);

// Adds a result over other keys to a result, both with their log-sum-exps, for `rows` rows of `dim`
// numbers (online softmax: Milakov and Gimelshein, 2018).
UNISONO_EXPORT void merge_attention(std::size_t rows, std::size_t dim, const float* other,
                                    const float* other_log_sum, float* out, float* log_sum);

}  // namespace unisono::parallel
