// Adds the tensors of a safetensors file: eight bytes with the length of a header in JSON, that
// header ({"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}), and the numbers.
#pragma once

#include <string>

#include "mapped.h"
#include "tensors.h"

namespace llm {

// `file` must outlive `tensors`. Errors: std::runtime_error, what is wrong with the file.
void add_safetensors(const MappedFile& file, Tensors& tensors);

}  // namespace llm
