#include "tensors.h"

#include <stdexcept>

namespace llm {

void Tensors::fail(const std::string& what) const {
  throw std::runtime_error(where_ + " " + what);
}

const StoredMatrix& Tensors::at(const std::string& name) const {
  const auto found = all_.find(name);
  if (found == all_.end()) {
    fail("has no tensor '" + name + "'");
  }
  return found->second;
}

void Tensors::must_be(const std::string& name, std::size_t rows, std::size_t columns) const {
  const StoredMatrix& matrix = at(name);
  if (matrix.rows != rows || matrix.columns != columns) {
    fail("has '" + name + "' of " + std::to_string(matrix.rows) + " x " +
         std::to_string(matrix.columns) + ", where the model needs " + std::to_string(rows) +
         " x " + std::to_string(columns));
  }
}

std::vector<float> Tensors::read(const std::string& name, unisono::parallel::Range rows,
                                 unisono::parallel::Range columns) const {
  const StoredMatrix& matrix = at(name);
  if (matrix.format == nullptr) {
    fail("has '" + name + "' in a type that is not supported here");
  }
  if (rows.first + rows.count > matrix.rows || columns.first + columns.count > matrix.columns) {
    fail("has '" + name + "' of " + std::to_string(matrix.rows) + " x " +
         std::to_string(matrix.columns) + ", less than the model needs");
  }
  const BlockFormat& format = *matrix.format;
  const std::size_t row_bytes = matrix.columns / format.elements * format.bytes;
  const std::size_t first = columns.first / format.elements;
  const std::size_t end = (columns.first + columns.count + format.elements - 1) / format.elements;
  std::vector<float> blocks((end - first) * format.elements);
  std::vector<float> part;
  part.reserve(rows.count * columns.count);
  for (std::size_t r = 0; r < rows.count; ++r) {
    const std::uint8_t* row = matrix.data + (rows.first + r) * row_bytes;
    for (std::size_t b = first; b < end; ++b) {
      format.unpack(row + b * format.bytes, &blocks[(b - first) * format.elements]);
    }
    const float* wanted = blocks.data() + (columns.first - first * format.elements);
    part.insert(part.end(), wanted, wanted + columns.count);
  }
  return part;
}

}  // namespace llm
