// Matrices in a mapped file, by name. Reading a part unpacks it to f32, so that a rank unpacks only
// the parts that it keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unisono/parallel/placement.hpp>
#include <vector>

#include "blocks.h"

namespace llm {

// Stored row by row; a vector has one row.
struct StoredMatrix {
  const BlockFormat* format = nullptr;
  std::size_t rows = 1;
  std::size_t columns = 1;
  const std::uint8_t* data = nullptr;
};

class Tensors {
 public:
  // `where`: file or folder, for errors.
  explicit Tensors(std::string where) : where_(std::move(where)) {}
  [[noreturn]] void fail(const std::string& what) const;  // std::runtime_error

  // Returns false if the name already exists.
  bool add(const std::string& name, const StoredMatrix& matrix) {
    return all_.emplace(name, matrix).second;
  }
  bool has(const std::string& name) const { return all_.contains(name); }
  // Errors: std::runtime_error if the matrix is missing.
  const StoredMatrix& at(const std::string& name) const;
  // Errors: std::runtime_error if the matrix is missing or has another shape.
  void must_be(const std::string& name, std::size_t rows, std::size_t columns) const;
  // Returns a contiguous part of a matrix. Errors: std::runtime_error if the matrix is missing or
  // too small.
  std::vector<float> read(const std::string& name, unisono::parallel::Range rows,
                          unisono::parallel::Range columns) const;

 private:
  std::string where_;
  std::map<std::string, StoredMatrix> all_;
};

}  // namespace llm
