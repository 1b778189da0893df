// Sources of a model's weights: a GGUF file, a folder with safetensors (folder.h), or a small
// random model.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unisono/parallel/placement.hpp>
#include <vector>

#include "gguf.h"

namespace llm {

struct Shape {
  std::size_t layers = 3;
  std::size_t width = 72;
  std::size_t heads = 9;
  std::size_t key_value_heads = 3;
  std::size_t dim = 8;
  std::size_t hidden = 160;
  std::size_t vocabulary = 256;
  float epsilon = 1e-5F;
  float rope_base = 10000;
  bool rope_halves = false;  // rotary pairs are half a head apart
  // Gemma 3: norms after attention and MLP and on queries and keys, GELU, and a scaled embedding.
  // In every group of `pattern` layers, all but the last have an attention window.
  bool is_gemma = false;
  std::size_t window = 0;
  std::size_t pattern = 0;
  float window_rope_base = 10000;
};

// Calls `use` with the name, rows and columns of each matrix of the model.
void for_each_matrix(const Shape& shape, bool has_output,
                     const std::function<void(const std::string&, std::size_t, std::size_t)>& use);

class Weights {
 public:
  virtual ~Weights() = default;
  virtual Shape shape() const = 0;
  virtual bool has(const std::string& name) const = 0;
  // Returns a part of a matrix [outputs, inputs], or of a vector, which has one row.
  virtual std::vector<float> read(const std::string& name, unisono::parallel::Range rows,
                                  unisono::parallel::Range columns) const = 0;
};

// Errors: std::runtime_error for an architecture other than llama and gemma3.
std::unique_ptr<Weights> file_weights(const Gguf& file);
// Returns a random model, whose tokens are bytes.
std::unique_ptr<Weights> random_weights(std::uint64_t seed);

}  // namespace llm
