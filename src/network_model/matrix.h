// Symmetric positive definite linear systems, solved by Cholesky's method.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace unisono::network_model {

// A square matrix, stored by rows.
class Matrix {
 public:
  explicit Matrix(std::size_t size) : size_(size), values_(size * size) {}

  std::size_t size() const { return size_; }
  double& at(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
  double at(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }

 private:
  std::size_t size_;
  std::vector<double> values_;
};

// The factor L of A = L L^T.
class Cholesky {
 public:
  // `ok()` is false if the matrix is not positive definite within rounding.
  explicit Cholesky(Matrix matrix);

  bool ok() const { return ok_; }
  // Returns the solution x of A x = b. REQUIRES: ok().
  std::vector<double> solve(std::span<const double> b) const;
  // Returns the diagonal of the inverse of A. REQUIRES: ok().
  std::vector<double> inverse_diagonal() const;

 private:
  Matrix lower_;
  bool ok_ = true;
};

}  // namespace unisono::network_model
