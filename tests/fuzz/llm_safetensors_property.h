// The property of any bytes given to examples/llm as a safetensors file.
#pragma once

#include <string>
#include <string_view>

#include "llm_files.h"
#include "safetensors.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure.
inline std::string llm_safetensors_property(std::string_view bytes) {
  const FileOfBytes file(bytes);
  return refusal_property([&file] {
    const llm::MappedFile mapped(file.path());
    llm::Tensors tensors(file.path());
    llm::add_safetensors(mapped, tensors);
    for (const char* name : {"a", "b", "model.norm.weight"}) {
      if (tensors.has(name) && tensors.at(name).format != nullptr) {
        const llm::StoredMatrix& matrix = tensors.at(name);
        const std::vector<float> numbers = tensors.read(name, {.first = 0, .count = matrix.rows},
                                                        {.first = 0, .count = matrix.columns});
        if (numbers.size() != matrix.rows * matrix.columns) {
          return std::string("a tensor of another size");
        }
      }
    }
    return std::string();
  });
}

}  // namespace unisono::fuzz
