// Products with a model's weights, by oneDNN or in a fixed order, and their precision.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "arena.h"

namespace llm {

// bf16: weights are stored in 16 bits, inputs are rounded to 16 bits, and sums are f32.
// f32_in_order: the sums of a row have the same bits for any number of rows and any part of the
// outputs (in_order/product.h).
enum class Precision : unsigned char { f32, bf16, f32_in_order };

// Weights [outputs, inputs], in the fastest layout for products. Used by one thread at a time.
class Matrix {
 public:
  Matrix();
  // `w`: row by row. The weights are stored in the arena, which must outlive the matrix.
  Matrix(std::span<const float> w, std::size_t outputs, Precision precision, Arena& arena);
  Matrix(Matrix&&) noexcept;
  Matrix& operator=(Matrix&&) noexcept;
  ~Matrix();

  std::size_t outputs() const;
  std::size_t bytes() const;
  // Computes y[rows, outputs] = x[rows, inputs] W'.
  void times(std::span<const float> x, std::span<float> y, std::size_t rows) const;
  // Part of the product over consecutive inputs, in blocks whose sums are added by the tree. Only
  // for f32_in_order. `ends`: ends of the blocks, relative to `first`.
  struct Blocks {
    std::size_t first = 0;
    std::span<const std::size_t> ends = {};
  };
  void times(std::span<const float> x, std::span<float> y, std::size_t rows,
             const Blocks& blocks) const;

 private:
  struct Packed;
  std::unique_ptr<Packed> packed_;
};

// Computes C[rows, columns] = scale * A[rows, inner] B. All matrices are row-major with given row
// distances. B is [inner, columns], or [columns, inner] if `is_turned`.
struct Product {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t inner = 0;
  float scale = 1;
  bool is_turned = false;
  bool in_order = false;
};
struct Rows {
  const float* data = nullptr;
  std::size_t step = 0;
};
void multiply(const Product& product, Rows a, Rows b, float* c, std::size_t c_step);

// Sets the number of threads per product in this process.
void set_product_threads(int threads);
int processors();

}  // namespace llm
