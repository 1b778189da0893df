// The shape of a decoder model: what its published configuration says, and what follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/stored.h"

namespace unisono::planner {

// Attention with compressed keys and values (DeepSeek-V2, 2024). All 0: plain heads.
struct LatentAttention {
  double query_rank = 0;
  double value_rank = 0;
  double plain_dim = 0;   // of a head's query and key, without a position
  double rotary_dim = 0;  // with a position
  double value_dim = 0;

  bool is_used() const { return value_rank > 0; }
};

// Linear attention or a state space: a sequence keeps a state of fixed size, no keys. Gated
// DeltaNet (Yang et al., 2024), Mamba-2 (Dao and Gu, 2024), Kimi Delta Attention (2025). All 0: no
// layer.
struct LinearMixer {
  double columns = 0;  // of the products into it
  double rows = 0;     // of the product out of it
  double small = 0;    // weights of convolutions, decays and norms
  double state = 0;    // elements
  double dim = 0;      // of a key

  bool is_used() const { return columns > 0; }
};

// Chooses the keys that attention sees, by short heads that score all tokens (DeepSeek-V3.2, 2025).
struct Indexer {
  double heads = 0;
  double dim = 0;
  double chosen = 0;  // tokens; 0: attention sees all
};

// Heads of attention in one layer.
struct Heads {
  int queries = 0;
  int keys = 0;
  double dim = 0;  // of a query and a key
  double value_dim = 0;

  // Elements of one token: of its queries, keys, values and results.
  double elements() const { return (queries + keys) * (dim + value_dim); }

  bool operator==(const Heads&) const = default;
};

// The mixer of a layer.
enum class Mixer : std::uint8_t { attention, linear, none };

// The kind of a layer, where the layers of a model differ.
struct LayerKind {
  bool has_experts = false;
  bool has_window = false;
  Mixer mixer = Mixer::attention;
  bool has_inner = true;  // false: a layer that only mixes tokens (Nemotron-H, 2025)

  bool operator==(const LayerKind&) const = default;
};

struct KindCount {
  LayerKind kind = {};
  int layers = 0;
};

struct ModelShape {
  std::string name = {};
  int layers = 0;
  double hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  double head_dim = 0;
  double value_dim = 0;          // of a value, if it is not that of a key
  bool keys_are_values = false;  // one matrix for both, in layers without a window
  bool gates_output = false;     // a second query gates what attention returns
  Heads window_heads = {};       // of layers with a window; no queries: those of all layers
  double ffn = 0;                // of a dense layer's inner width
  bool gated = true;             // two matrices into the inner width (SwiGLU), else one
  double vocabulary = 0;
  bool tied = false;        // one matrix for the embedding and the head
  double window = 0;        // tokens that attention with a window sees; 0: no layer has one
  bool is_chunked = false;  // a window is the query's chunk of the sequence, not the last tokens
  LatentAttention latent = {};
  Indexer indexer = {};
  LinearMixer linear = {};
  double vectors = 0;  // norms, biases and learned positions of the whole model

  int experts = 0;  // of a layer; 0: a dense model
  int experts_per_token = 0;
  double expert_ffn = 0;
  double shared_ffn = 0;  // of experts that every token visits

  bool gated_experts = true;  // as `gated`

  // The kinds of the first layers. Those behind have experts and a window if the model has any.
  std::vector<LayerKind> kinds = {};
  std::optional<StoredWeights> stored = {};  // how the checkpoint holds its weights; unset: plain

  bool has_experts() const { return experts > 0; }
  LayerKind kind(int layer) const;
  int expert_layers() const;
  int window_layers() const;
  // Counts the layers of each kind.
  std::vector<KindCount> kind_counts() const;
  // All layers are attention and an inner part, and all heads are alike.
  bool is_uniform() const;
};

Heads heads_of(const ModelShape& shape, LayerKind kind);

// The sum of a figure of each layer.
template <typename Figure>
double sum_of_layers(const ModelShape& shape, const Figure& figure) {
  double sum = 0;
  for (const KindCount& each : shape.kind_counts()) {
    sum += each.layers * figure(each.kind);
  }
  return sum;
}

// Layers of which every `period`-th one, from the `first` one on, sees the whole sequence and the
// others have a window.
std::vector<LayerKind> window_pattern(int layers, int period, int first, bool has_experts);

// Weights of one layer's parts.
double mixer_weights(const ModelShape& shape, LayerKind kind);
double dense_weights(const ModelShape& shape);   // of a dense layer's inner part
double shared_weights(const ModelShape& shape);  // of shared experts and the router
double expert_weights(const ModelShape& shape);  // of one expert
double total_weights(const ModelShape& shape);
double active_weights(const ModelShape& shape);  // that one token meets

// Weights of all layers, by the part that they are stored in.
struct PartWeights {
  double attention = 0;
  double dense = 0;
  double shared = 0;
  double experts = 0;
  double ends = 0;  // embedding, head and vectors

  double total() const { return attention + dense + shared + experts + ends; }
};
PartWeights part_weights(const ModelShape& shape);
double bytes_of(const PartWeights& weights, const StoredWeights& stored);

// Elements that a token leaves in the cache, in one layer, besides those of an indexer.
double cache_elements(const ModelShape& shape, LayerKind kind);
// Elements that a sequence of `tokens` leaves in the caches of all layers.
double kept_elements(const ModelShape& shape, double tokens);
// Bytes of the states of linear mixers of one sequence, in f32.
double state_bytes(const ModelShape& shape);

// Tokens that a layer's cache keeps of `tokens`, and that the attention of one more token sees.
double kept_tokens(const ModelShape& shape, LayerKind kind, double tokens);
double seen_tokens(const ModelShape& shape, LayerKind kind, double tokens);
// Tokens that a token of a sequence sees, in the mean of its places, under a causal mask.
double seen_in_sequence(const ModelShape& shape, LayerKind kind, double tokens);
// FLOPs of mixing one token of a sequence with the others in all layers, in the mean of its places,
// besides products with weights.
double mixing_flops(const ModelShape& shape, double tokens);

// The models that are known by name, and one of them.
std::vector<std::string_view> known_models();
std::optional<ModelShape> find_model(std::string_view name);

// Returns a sentence that says what is wrong with the shape; empty: nothing.
std::string problem_of(const ModelShape& shape);

}  // namespace unisono::planner
