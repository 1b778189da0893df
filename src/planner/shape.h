// The shape of a decoder model: its published configuration, and the figures that follow from it.
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
  double plain_dim = 0;   // per query and key head, without positions
  double rotary_dim = 0;  // with positions
  double value_dim = 0;

  bool is_used() const { return value_rank > 0; }
};

// Linear attention or a state space model: a sequence keeps a state of fixed size instead of keys.
// Gated DeltaNet (Yang et al., 2024), Mamba-2 (Dao and Gu, 2024), Kimi Delta Attention (2025). All
// 0: no such layer.
struct LinearMixer {
  double columns = 0;  // of the input products
  double rows = 0;     // of the output product
  double small = 0;    // weights of convolutions, decays and norms
  double state = 0;    // elements
  double dim = 0;      // per key

  bool is_used() const { return columns > 0; }
};

// Selects the keys that attention sees, by short heads that score all tokens (DeepSeek-V3.2, 2025).
struct Indexer {
  double heads = 0;
  double dim = 0;
  double chosen = 0;  // tokens; 0: attention sees all
};

// Heads of attention in one layer.
struct Heads {
  int queries = 0;
  int keys = 0;
  double dim = 0;  // per query and key
  double value_dim = 0;

  // Returns the elements of one token: its queries, keys, values and results.
  double elements() const { return (queries + keys) * (dim + value_dim); }

  bool operator==(const Heads&) const = default;
};

// The mixer of a layer.
enum class Mixer : std::uint8_t { attention, linear, none };

// The kind of a layer, if the layers of a model differ.
struct LayerKind {
  bool has_experts = false;
  bool has_window = false;
  Mixer mixer = Mixer::attention;
  bool has_inner = true;  // false: the layer only mixes tokens (Nemotron-H, 2025)

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
  double value_dim = 0;          // per value; 0: equal to a key's
  bool keys_are_values = false;  // one matrix for both, in layers without a window
  bool gates_output = false;     // a second query gates the output of attention
  Heads window_heads = {};       // in layers with a window; without queries: the heads of all
                                 // layers
  double ffn = 0;                // inner width of a dense layer
  bool gated = true;             // two matrices into the inner width (SwiGLU); else one
  double vocabulary = 0;
  bool tied = false;        // embedding and head share one matrix
  double window = 0;        // tokens that windowed attention sees; 0: no layer has a window
  bool is_chunked = false;  // a window is the query's chunk of the sequence instead of the last
                            // tokens
  LatentAttention latent = {};
  Indexer indexer = {};
  LinearMixer linear = {};
  double vectors = 0;  // norms, biases and learned positions of the whole model

  int experts = 0;  // per layer; 0: a dense model
  int experts_per_token = 0;
  double expert_ffn = 0;
  double shared_ffn = 0;  // width of experts that every token visits

  bool gated_experts = true;  // like `gated`

  // The kinds of the first layers. All further layers have experts and a window if the model has
  // them.
  std::vector<LayerKind> kinds = {};
  std::optional<StoredWeights> stored = {};  // how the checkpoint stores its weights; unset:
                                             // unquantised

  bool has_experts() const { return experts > 0; }
  LayerKind kind(int layer) const;
  int expert_layers() const;
  int window_layers() const;
  // Counts the layers of each kind.
  std::vector<KindCount> kind_counts() const;
  // Returns true if all layers have attention and an inner part, and all heads are equal.
  bool is_uniform() const;
};

Heads heads_of(const ModelShape& shape, LayerKind kind);

// Returns the sum of a figure over the layers.
template <typename Figure>
double sum_of_layers(const ModelShape& shape, const Figure& figure) {
  double sum = 0;
  for (const KindCount& each : shape.kind_counts()) {
    sum += each.layers * figure(each.kind);
  }
  return sum;
}

// Returns layers of which every `period`-th one, starting with `first`, sees the whole sequence.
// The others have a window.
std::vector<LayerKind> window_pattern(int layers, int period, int first, bool has_experts);

// Return the weights of parts of one layer.
double mixer_weights(const ModelShape& shape, LayerKind kind);
double dense_weights(const ModelShape& shape);   // of a dense layer's inner part
double shared_weights(const ModelShape& shape);  // of shared experts and the router
double expert_weights(const ModelShape& shape);  // of one expert
double total_weights(const ModelShape& shape);
double active_weights(const ModelShape& shape);  // used for one token

// The weights of all layers, by the part in which they are stored.
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

// Returns the elements that a token adds to the cache of one layer, besides those of an indexer.
double cache_elements(const ModelShape& shape, LayerKind kind);
// Returns the elements that a sequence of `tokens` keeps in the caches of all layers.
double kept_elements(const ModelShape& shape, double tokens);
// Returns the bytes of one sequence's linear mixer states, in f32.
double state_bytes(const ModelShape& shape);

// Return the number of `tokens` that a layer's cache keeps, and that one more token attends to.
double kept_tokens(const ModelShape& shape, LayerKind kind, double tokens);
double seen_tokens(const ModelShape& shape, LayerKind kind, double tokens);
// Returns the tokens that a token of a sequence attends to under a causal mask, averaged over its
// positions.
double seen_in_sequence(const ModelShape& shape, LayerKind kind, double tokens);
// Returns the FLOPs per token of mixing it with other tokens in all layers, averaged over the
// positions, without products with weights.
double mixing_flops(const ModelShape& shape, double tokens);

// The models known by name; find_model() returns one of them.
std::vector<std::string_view> known_models();
std::optional<ModelShape> find_model(std::string_view name);

// Returns what is wrong with the shape, as a sentence; empty if it is valid.
std::string problem_of(const ModelShape& shape);

}  // namespace unisono::planner
