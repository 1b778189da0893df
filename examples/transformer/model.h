// A small GPT distributed over ranks. Its layers are called one by one, forward and backward, so
// that a pipeline can assign layers to ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unisono/exact_sum.hpp>
#include <unisono/parallel/mesh.hpp>
#include <unisono/parallel/sharded_state.hpp>
#include <unisono/parallel/tensor_parallel.hpp>
#include <unisono/tree_sum.hpp>
#include <vector>

#include "layout.h"

namespace transformer {

struct Config {
  std::size_t layers = 4;
  std::size_t width = 256;
  std::size_t heads = 8;
  std::size_t key_value_heads = 4;
  std::size_t hidden = 1024;
  std::size_t vocabulary = 512;
  std::size_t length = 32;  // tokens per sequence
  std::size_t batch = 8;    // sequences per step, over all ranks
  double rate = 1e-3;
  double max_norm = 1.0;
  std::uint64_t seed = 17;
  // Uses rotary positions and SwiGLU, like Llama, instead of sines added to the embedding and GELU.
  bool llama = false;
  // For the same bits: number of equal parts into which sums over the hidden features and the
  // vocabulary are divided. Sums over attention's features are divided by heads.
  std::size_t parts = 8;
  // For the same bits: number of blocks into which attention's sums over a sequence are divided;
  // enough for a ring of 8 ranks in zigzag order.
  std::size_t blocks = 16;
  std::size_t head_dim() const { return width / heads; }
};

// A matrix or vector of the model, and its sharding over the tensor-parallel ranks.
struct Weight {
  std::string name;
  std::size_t rows = 0;
  std::size_t columns = 0;  // 1 for a vector
  enum class Cut { none, rows, columns } cut = Cut::none;
  // Each tensor-parallel rank has a summand of the gradient. For the same bits, leaves are summed
  // over these ranks one by one instead.
  bool is_summed = false;
  float deviation = 0;  // of the initial values; 0: all ones
  bool is_vector() const { return columns == 1; }
};

// The groups of this rank.
struct Groups {
  unisono::Communicator& tp;
  unisono::parallel::ContextAxes context;
  unisono::Communicator* sequences = nullptr;  // context-parallel ranks, for the same bits
};
Groups groups_of(unisono::parallel::Mesh& mesh, const Layout& layout, const Config& config);

// Sizes of one microbatch under a layout.
struct Local {
  const Config& config;
  Layout layout;
  std::size_t batch = 0;               // sequences
  std::vector<std::size_t> positions;  // this rank's positions in each sequence
  std::size_t rows() const { return batch * positions.size(); }
  unisono::parallel::RegionShape region(std::size_t width) const {
    return {.rows = rows(), .width = width, .sequence = layout.sequence};
  }
};

// For the same bits, sequences are the leaves of all gradients. Sequences of a microbatch are
// numbered from `first`. ready() is called when a unit's gradients are the sum of a tree node.
struct LeafReady {
  std::size_t first = 0;
  std::function<void(const unisono::Leaves& node)> ready = {};
};
struct Factors;

// Weights of a unit, in list order, and their gradients.
class Unit {
 public:
  Unit(const std::vector<Weight>& list, int ranks, int rank, std::span<const float> weights,
       std::span<float> gradients);
  std::span<const float> weight(std::size_t index) const;
  std::span<float> gradient(std::size_t index) const;

 private:
  std::vector<std::size_t> first_;
  std::span<const float> weights_;
  std::span<float> gradients_;
};

std::vector<Weight> embedding_weights(const Config& config, const Layout& layout);
std::vector<Weight> block_weights(const Config& config, const Layout& layout, int tp,
                                  std::size_t layer);
std::vector<Weight> head_weights(const Config& config, const Layout& layout);
// Returns the weights of all units, in model order. `tp`: number of tensor-parallel ranks.
std::vector<std::vector<Weight>> all_weights(const Config& config, const Layout& layout, int tp);
// Returns the number of the weight's elements on a rank.
std::size_t local_count(const Weight& weight, int ranks, int rank);
// Returns the weight's initial values, unsharded.
std::vector<float> initial(const Weight& weight, std::uint64_t seed);
// cut() returns this rank's part of a whole weight. join(), collective over tp, returns the whole
// weight.
std::vector<float> cut(const Weight& weight, std::span<const float> whole, int ranks, int rank);
std::vector<float> join(const Weight& weight, std::span<const float> part,
                        unisono::Communicator& tp);

// Inputs and outputs of layers are the rows that a rank has outside of tensor-parallel regions.
// forward() keeps the data that a microbatch's backward pass needs.
class Embedding {
 public:
  Embedding(const Groups& groups, const Local& local) : groups_(groups), local_(local) {}
  std::vector<float> forward(const Unit& unit, std::span<const std::int32_t> tokens) const;
  void backward(const Unit& unit, std::span<const std::int32_t> tokens,
                std::span<const float> gradient, const LeafReady& leaf_ready) const;

 private:
  const Groups& groups_;
  const Local& local_;
};

class Block {
 public:
  Block(const Groups& groups, const Local& local);
  std::vector<float> forward(const Unit& unit, std::vector<float> x, int microbatch);
  // The backward pass has two halves for pipelines: first the gradient of the input, for which the
  // previous layer waits, and later the gradients of the matrices. Gradients of gains belong to the
  // first half.
  std::vector<float> backward_input(const Unit& unit, std::vector<float> gradient, int microbatch);
  void backward_weight(const Unit& unit, int microbatch, const LeafReady& leaf_ready);

 private:
  struct Kept {
    std::vector<float> x, attention_in, q, k, v, attended, log_sum, middle, mlp_in, hidden, active;
    std::vector<float> gate;                                     // SwiGLU
    std::vector<float> dout, dq, dk, dv, ddown, dhidden, dgate;  // between the two halves
    std::vector<float> dnorm1, dnorm2;                           // per row, for the same bits
  };
  std::vector<float> attention(const Unit& unit, Kept& kept);
  std::vector<float> attention_backward(const Unit& unit, Kept& kept,
                                        std::span<const float> gradient);
  std::vector<float> mlp(const Unit& unit, Kept& kept);
  std::vector<float> mlp_backward(const Unit& unit, Kept& kept, std::span<const float> gradient);
  // Return the rows of k or v for this rank's heads, from weights that all ranks have whole.
  std::span<const float> own_rows(std::span<const float> weight) const;
  std::span<float> own_rows(std::span<float> weight) const;
  // Copies keys or values for every query head. For the same bits, each head needs its own copy, so
  // that sums over heads have one order.
  std::vector<float> repeated(std::span<const float> keys) const;
  // Rotates queries or keys to their positions; gradients are rotated back.
  void rotate_rows(std::span<float> x, float direction) const;
  template <typename Span>
  Span rows_of_head(Span weight, std::size_t head) const;
  Factors key_factors(const Kept& kept, std::span<const float> dy, std::span<float> gradient) const;

  const Groups& groups_;
  const Local& local_;
  unisono::parallel::HeadShare share_;
  unisono::parallel::AttentionShape shape_;
  std::map<int, Kept> kept_;
};

class Head {
 public:
  Head(const Groups& groups, const Local& local) : groups_(groups), local_(local) {}
  // Sum of the losses of this rank's tokens, equal on their tensor-parallel ranks, and the gradient
  // of the mean loss over all tokens of the step.
  struct Result {
    unisono::ExactSum loss;
    std::vector<float> gradient;
  };
  Result run(const Unit& unit, std::span<const float> x, std::span<const std::int32_t> targets,
             const LeafReady& leaf_ready) const;

 private:
  const Groups& groups_;
  const Local& local_;
};

}  // namespace transformer
