// Weights and metadata of a GGUF file (version 2 or 3), mapped into memory. Quantised blocks are
// unpacked to f32 when a part of a tensor is read, so that a rank unpacks only what it keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unisono/parallel/placement.hpp>
#include <variant>
#include <vector>

namespace llm {

// Integers of all widths are i64, floats f64; arrays are of strings or of numbers.
using Meta = std::variant<std::int64_t, double, bool, std::string, std::vector<std::string>,
                          std::vector<double>>;

class Gguf {
 public:
  // Errors: std::runtime_error, with the file and what is wrong with it.
  explicit Gguf(const std::string& path);
  Gguf(const Gguf&) = delete;
  Gguf& operator=(const Gguf&) = delete;
  ~Gguf();

  bool has_meta(const std::string& key) const { return meta_.contains(key); }
  // Errors: std::runtime_error, where the key is missing or of another kind.
  template <typename T>
  const T& meta(const std::string& key) const {
    const auto found = meta_.find(key);
    if (found == meta_.end() || !std::holds_alternative<T>(found->second)) {
      fail("has no '" + key + "' of the kind that is needed");
    }
    return std::get<T>(found->second);
  }

  bool has_tensor(const std::string& name) const { return tensors_.contains(name); }
  // By row-major order, the slowest first: a vector has one row.
  std::size_t rows(const std::string& name) const;
  std::size_t columns(const std::string& name) const;
  // A part of a matrix, packed.
  std::vector<float> read(const std::string& name, unisono::parallel::Range rows,
                          unisono::parallel::Range columns) const;

 private:
  struct Stored {
    std::uint32_t type = 0;
    std::size_t rows = 1;
    std::size_t columns = 1;
    std::size_t offset = 0;
  };
  [[noreturn]] void fail(const std::string& what) const;
  const Stored& tensor(const std::string& name) const;
  void parse();

  std::string path_;
  std::span<const std::uint8_t> bytes_;
  std::map<std::string, Meta> meta_;
  std::map<std::string, Stored> tensors_;
};

}  // namespace llm
