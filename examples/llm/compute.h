// Layer computations on one rank, in f32. Matrices are row-major.
#pragma once

#include <cstddef>
#include <span>
#include <unisono/parallel/context_parallel.hpp>
#include <unisono/parallel/tensor_parallel.hpp>
#include <vector>

namespace llm {

// RMSNorm (Zhang and Sennrich, 2019). `x` contains rows of gain.size() numbers, and may be `y`.
void rms_norm(std::span<const float> x, std::span<const float> gain, float epsilon,
              std::span<float> y);
// Computes x += added and y = rms_norm(x) in one pass over each row.
void add_and_norm(std::span<const float> added, std::span<float> x, std::span<const float> gain,
                  float epsilon, std::span<float> y);

// Layer normalisation (Ba et al., 2016) in place. `x` contains rows of gain.size() numbers.
void layer_norm(std::span<float> x, std::span<const float> gain, std::span<const float> bias,
                float epsilon);
// Adds the bias to each row.
void add_bias(std::span<const float> bias, std::span<float> x);
// GELU by the error function (Hendrycks and Gimpel, 2016), in place.
void gelu(std::span<float> x);

// Computes gate = activation(gate) * up, with SiLU (SwiGLU: Shazeer, 2020) or GELU by the
// hyperbolic tangent.
void gated(std::span<float> gate, std::span<const float> up, bool is_gelu);

// Rotary embedding (Su et al., 2021) of [positions, heads, dim] in place. The elements of a pair
// are adjacent or half a head apart.
struct Rope {
  float base = 10000;
  std::size_t dim = 0;
  bool halves = false;
};
// Sines and cosines of a rotary embedding for some positions.
struct Turns {
  std::size_t dim = 0;
  bool halves = false;
  std::vector<float> cosines, sines;  // [positions, dim / 2]
};
Turns turns_of(const Rope& rope, std::span<const std::size_t> positions);
void rotate(const Turns& turns, std::span<float> x);

// Returns the attention kernel for this rank's heads. `window`: maximum number of keys visible to a
// query, including its own; 0: all previous keys. `in_order`: if keys are in position order, a
// query's row has the same bits for any number of queries and of invisible keys.
unisono::parallel::AttentionKernel attention_kernel(std::size_t window, bool in_order = false);

}  // namespace llm
