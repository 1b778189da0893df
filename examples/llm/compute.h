// The computations of the layers on one rank, in f32; matrices are row-major.
#pragma once

#include <cstddef>
#include <span>
#include <unisono/parallel/context_parallel.hpp>
#include <unisono/parallel/tensor_parallel.hpp>
#include <vector>

namespace llm {

// Zhang and Sennrich, 2019. `x` is some rows of gain.size() numbers each, and may be `y`.
void rms_norm(std::span<const float> x, std::span<const float> gain, float epsilon,
              std::span<float> y);
// x += added, and y = rms_norm(x), in one pass over each row.
void add_and_norm(std::span<const float> added, std::span<float> x, std::span<const float> gain,
                  float epsilon, std::span<float> y);

// Ba et al., 2016, in place. `x` is some rows of gain.size() numbers each.
void layer_norm(std::span<float> x, std::span<const float> gain, std::span<const float> bias,
                float epsilon);
// Adds the bias to each row.
void add_bias(std::span<const float> bias, std::span<float> x);
// Hendrycks and Gimpel, 2016, by the error function.
void gelu(std::span<float> x);

// gate = activation(gate) * up: SiLU (SwiGLU: Shazeer, 2020), or GELU by the hyperbolic tangent.
void gated(std::span<float> gate, std::span<const float> up, bool is_gelu);

// Rotary embedding (Su et al., 2021) of [positions, heads, dim] in place. Pairs are neighbours, or
// lie half a head apart.
struct Rope {
  float base = 10000;
  std::size_t dim = 0;
  bool halves = false;
};
// Its sines and cosines for some positions.
struct Turns {
  std::size_t dim = 0;
  bool halves = false;
  std::vector<float> cosines, sines;  // [positions, dim / 2]
};
Turns turns_of(const Rope& rope, std::span<const std::size_t> positions);
void rotate(const Turns& turns, std::span<float> x);

// Attention of this rank's heads. `window`: the most keys that a query sees, its own included; 0:
// all before. `in_order`: with keys in the order of positions, a query's row has the same bits for
// any number of queries, and of keys that it does not see.
unisono::parallel::AttentionKernel attention_kernel(std::size_t window, bool in_order = false);

}  // namespace llm
