// Products with the weights of a model, by oneDNN or in one order, and the precision that they have
// in them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "arena.h"

namespace llm {

// bf16: weights are stored in 16 bits, and their factors are rounded to 16 bits; sums are f32.
// f32_in_order: the sums of a row have the same bits for any number of rows and for any part of the
// outputs (in_order/product.h).
enum class Precision : unsigned char { f32, bf16, f32_in_order };

// Weights [outputs, inputs], laid out as products read them fastest. Thread rule: one at a time.
class Matrix {
 public:
  Matrix();
  // `w`: row after row. The weights lie in the arena, which must live as long.
  Matrix(std::span<const float> w, std::size_t outputs, Precision precision, Arena& arena);
  Matrix(Matrix&&) noexcept;
  Matrix& operator=(Matrix&&) noexcept;
  ~Matrix();

  std::size_t outputs() const;
  std::size_t bytes() const;
  // y[rows, outputs] = x[rows, inputs] W'
  void times(std::span<const float> x, std::span<float> y, std::size_t rows) const;
  // In order only: the part of that product over some neighbouring inputs, blocks whose sums are
  // added by the tree. `ends`: where the blocks end, counted from `first`.
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

// C[rows, columns] = scale * A[rows, inner] B, all row-major, the distance between rows given. B is
// [inner, columns], or where `is_turned` [columns, inner].
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

// Sets the number of threads for a product in this process.
void set_product_threads(int threads);
int processors();

}  // namespace llm
