// Reads safetensors files: eight bytes with the length of a JSON header, the header ({"name":
// {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}), and the numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mapped.h"
#include "tensors.h"

namespace llm {

// Adds the tensors of a file. `file` must outlive `tensors`. Errors: std::runtime_error with the
// file's mistake.
void add_safetensors(const MappedFile& file, Tensors& tensors);

// The tensors of model.safetensors, or of the files that model.safetensors.index.json names.
class SafetensorsFolder {
 public:
  // Errors: std::runtime_error with the file and its mistake.
  explicit SafetensorsFolder(const std::string& folder);
  const Tensors& tensors() const { return tensors_; }

 private:
  void add(const std::string& path);

  std::vector<std::unique_ptr<MappedFile>> files_;
  Tensors tensors_;
};

}  // namespace llm
