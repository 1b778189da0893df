// A decoder of the Llama family, distributed over ranks along the axes pp, cp, ep and tp.
//
//   tp   shards heads, the MLP's hidden features and the vocabulary; two all_reduces per layer
//   pp   each rank has some layers, and sends activations to the next rank
//   cp   shards the prompt and the cache of keys and values over the sequence
//   ep   the MLP is a mixture of experts, copies of the dense one (upcycling: Komatsuzaki et al.,
//        2022), whose weighted mean equals the dense MLP for any routing
//
// With Precision::f32_in_order, logits have the same bits under every layout, for prompts and for
// single tokens. Inputs that tp shards are divided into blocks, which are summed by a tree. Every
// cp rank has all keys and values. The two experts of a token have equal weights, because halves of
// equal rows add up to exactly that row.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unisono/parallel/context_parallel.hpp>
#include <unisono/parallel/experts.hpp>
#include <unisono/parallel/mesh.hpp>
#include <unisono/parallel/tensor_parallel.hpp>
#include <unisono/tree_sum.hpp>
#include <vector>

#include "compute.h"
#include "matrix.h"
#include "weights.h"

namespace llm {

struct Layer {
  std::vector<float> attention_norm, mlp_norm;
  std::vector<float> after_attention, after_mlp, q_norm, k_norm;  // Gemma
  Matrix q, k, v, o, gate, up, down, router;
  std::vector<float> keys, values;  // the cache
};

// The times of a step, in seconds, and the memory of this rank.
struct Times {
  double total = 0;
  double communication = 0;
  double waiting = 0;  // part of communication: waiting for other ranks; unknown for experts' rows
};

class Model {
 public:
  // Collective over the mesh. `weights` must outlive the model, because embeddings are read on
  // demand. Errors: errors of head_share() and of the weights.
  Model(unisono::parallel::Mesh& mesh, const Weights& weights, Precision precision);

  // Clears the context.
  void clear();
  // Appends tokens and returns the likeliest next tokens, likeliest first. Collective, with the
  // same tokens and results on all ranks. With cp, only the first call after clear() may have
  // several tokens. Errors: errors of Communicator::run().
  std::vector<unisono::parallel::Candidate> append(std::span<const std::int32_t> tokens,
                                                   std::size_t count);
  // Returns a hash of all logits after the last token, which is equal on all ranks. Only for
  // f32_in_order.
  std::uint64_t logit_bits() const { return logit_bits_; }
  bool has_experts() const { return exchange_ != nullptr; }
  std::size_t weight_bytes() const;
  const Times& times() const { return times_; }
  const Shape& shape() const { return shape_; }

 private:
  class Timed;
  // Inputs of a matrix that tp shards, in blocks that do not depend on the layout.
  struct CutInputs {
    std::vector<unisono::Leaves> of_ranks;  // blocks of each tp rank
    std::vector<std::size_t> bounds;        // block i has inputs [bounds[i], bounds[i + 1])
    unisono::parallel::Range range(int rank) const;
  };
  CutInputs cut_heads() const;
  CutInputs cut_hidden() const;
  void load(Precision precision);
  double waited() const;
  void prepare(std::size_t rows);
  void embed(std::span<const std::int32_t> tokens);
  void attention(Layer& layer, std::size_t number);
  std::vector<float> attend(Layer& layer, std::size_t window, std::span<const float> q,
                            std::span<const float> k, std::span<const float> v);
  void mlp(const Layer& layer, std::span<const float> next_norm);
  void dense(const Layer& layer, std::span<const float> in, std::size_t rows, std::span<float> out);
  // Computes a product whose inputs tp shards: this rank's summand, or the sum if it is in order.
  void multiply_cut(const Matrix& matrix, const CutInputs& inputs, std::span<const float> in,
                    std::size_t rows, std::span<float> out);
  void keep_all(Layer& layer, std::span<const float> k, std::span<const float> v);
  void hash(std::span<const float> logits);
  void experts(const Layer& layer, std::size_t rows);
  void sum_over_tp();
  void add_given(std::span<const float> after, std::span<const float> norm);
  std::vector<unisono::parallel::Candidate> head(std::size_t count);

  unisono::parallel::Mesh& mesh_;
  const Weights& weights_;
  Shape shape_;
  bool in_order_;
  unisono::parallel::HeadShare share_;
  CutInputs heads_cut_, hidden_cut_;
  unisono::parallel::Range layers_range_;
  unisono::parallel::Range hidden_;
  unisono::parallel::Range words_;
  Arena arena_;  // memory of all matrices
  std::vector<Layer> layers_;
  Matrix output_;
  std::vector<float> norm_;
  // Output row of one token, in memory that the other tp ranks read directly, and its prepared sum
  // over tp.
  unisono::Region row_;
  std::optional<unisono::Plan> row_sum_;
  std::unique_ptr<unisono::ExpertExchange> exchange_;
  std::size_t length_ = 0;              // tokens so far, on all ranks
  std::vector<std::size_t> positions_;  // positions of this call's tokens on this rank
  std::vector<std::size_t> cached_;     // positions of the cache's rows
  std::size_t call_length_ = 0;
  std::uint64_t logit_bits_ = 0;
  // State of this call: the residual stream, the normalised stream, and a layer's output.
  std::vector<float> x_, normal_, many_;
  std::span<float> given_;
  Turns turns_, window_turns_;
  Times times_;
};

}  // namespace llm
