// Weights and metadata of a GGUF file (version 2 or 3), mapped into memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "mapped.h"
#include "tensors.h"

namespace llm {

// Integers of all widths become i64 and floats f64. Arrays contain strings or numbers.
using Meta = std::variant<std::int64_t, double, bool, std::string, std::vector<std::string>,
                          std::vector<double>>;

class Gguf {
 public:
  // Errors: std::runtime_error with the file and its mistake.
  explicit Gguf(const std::string& path);

  bool has_meta(const std::string& key) const { return meta_.contains(key); }
  // Errors: std::runtime_error if the key is missing or has another kind.
  template <typename T>
  const T& meta(const std::string& key) const {
    const auto found = meta_.find(key);
    if (found == meta_.end() || !std::holds_alternative<T>(found->second)) {
      tensors_.fail("has no '" + key + "' of the required kind");
    }
    return std::get<T>(found->second);
  }

  const Tensors& tensors() const { return tensors_; }

 private:
  void parse();

  MappedFile file_;
  std::map<std::string, Meta> meta_;
  Tensors tensors_;
};

}  // namespace llm
