#include "network_model/matrix.h"

#include <cmath>
#include <utility>

namespace unisono::network_model {

Cholesky::Cholesky(Matrix matrix) : lower_(std::move(matrix)) {
  for (std::size_t column = 0; column < lower_.size(); ++column) {
    for (std::size_t row = column; row < lower_.size(); ++row) {
      double value = lower_.at(row, column);
      for (std::size_t k = 0; k < column; ++k) {
        value -= lower_.at(row, k) * lower_.at(column, k);
      }
      if (row == column) {
        ok_ = ok_ && value > 0 && std::isfinite(value);
        lower_.at(row, column) = std::sqrt(value);
      } else {
        lower_.at(row, column) = value / lower_.at(column, column);
      }
    }
    if (!ok_) {
      return;
    }
  }
}

std::vector<double> Cholesky::solve(std::span<const double> b) const {
  std::vector<double> x(b.begin(), b.end());
  for (std::size_t row = 0; row < x.size(); ++row) {
    for (std::size_t k = 0; k < row; ++k) {
      x[row] -= lower_.at(row, k) * x[k];
    }
    x[row] /= lower_.at(row, row);
  }
  for (std::size_t row = x.size(); row-- > 0;) {
    for (std::size_t k = row + 1; k < x.size(); ++k) {
      x[row] -= lower_.at(k, row) * x[k];
    }
    x[row] /= lower_.at(row, row);
  }
  return x;
}

std::vector<double> Cholesky::inverse_diagonal() const {
  // Column c of the inverse of L adds its squares to the diagonal.
  const std::size_t size = lower_.size();
  std::vector<double> diagonal(size);
  std::vector<double> column(size);
  for (std::size_t c = 0; c < size; ++c) {
    for (std::size_t row = c; row < size; ++row) {
      double value = row == c ? 1 : 0;
      for (std::size_t k = c; k < row; ++k) {
        value -= lower_.at(row, k) * column[k];
      }
      column[row] = value / lower_.at(row, row);
      diagonal[c] += column[row] * column[row];
    }
  }
  return diagonal;
}

}  // namespace unisono::network_model
