// Layer computations on one rank. All matrices are row-major f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unisono/parallel/context_parallel.hpp>

namespace transformer {

// Computes c[m, n] (+)= a[m, k] * b[k, n], where a or b may be stored transposed.
//
// A matrix library sums over k in an order that depends on the shape. With `in_order`, each element
// is one sum over ascending k for any shape (in_order/product.h).
struct Product {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  bool transpose_a = false;
  bool transpose_b = false;
  bool add = false;
  bool in_order = false;
};
void multiply(const Product& product);
const char* product_library();  // "OpenBLAS 0.3.21", or "plain loops"

// Computes y = x W', with W [outputs, inputs], and its gradients. The gradient of W is added to dw.
void linear(std::span<const float> x, std::span<const float> w, std::span<float> y,
            std::size_t rows, bool in_order = false);
void linear_backward_input(std::span<const float> w, std::span<const float> dy, std::span<float> dx,
                           std::size_t rows, bool add_dx, bool in_order = false);
void linear_backward_weight(std::span<const float> x, std::span<const float> dy,
                            std::span<float> dw, std::size_t rows, bool in_order = false);

// RMSNorm (Zhang and Sennrich, 2019). The backward pass adds the gradient of the gain to `dgain`.
// If `dgain` has the size of x, it gets each row's contribution separately.
void rms_norm(std::span<const float> x, std::span<const float> gain, std::span<float> y);
void rms_norm_backward(std::span<const float> x, std::span<const float> gain,
                       std::span<const float> dy, std::span<float> dx, std::span<float> dgain);

// GELU by the hyperbolic tangent (Hendrycks and Gimpel, 2016).
void gelu(std::span<const float> x, std::span<float> y);
void gelu_backward(std::span<const float> x, std::span<const float> dy, std::span<float> dx);

// Computes y = silu(gate) * x, the gated unit of SwiGLU (Shazeer, 2020).
void gated(std::span<const float> gate, std::span<const float> x, std::span<float> y);
void gated_backward(std::span<const float> gate, std::span<const float> x,
                    std::span<const float> dy, std::span<float> dgate, std::span<float> dx);

// Rotary embedding (Su et al., 2021) of [rows, heads, dim] in place, with base 10000 and pairs half
// a head apart. Row r has position r modulo the number of positions. Direction -1 reverses the
// rotation.
void rotate(std::span<float> x, std::size_t rows, std::span<const std::size_t> positions,
            std::size_t dim, float direction);

// Returns the attention kernel, scaled dot products with softmax, which context_attention() calls
// block by block.
unisono::parallel::AttentionKernel attention_kernel();

}  // namespace transformer
