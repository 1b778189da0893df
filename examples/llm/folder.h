// Reads a model from a Hugging Face folder: config.json, model.safetensors (or several files with
// model.safetensors.index.json), and an optional tokenizer.json.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "vocabulary.h"
#include "weights.h"

namespace llm {

// Errors: std::runtime_error with the file and its mistake, or for a model other than Llama.
std::unique_ptr<Weights> folder_weights(const std::string& folder);
// Returns nullopt if there is no tokenizer.json. Errors: std::runtime_error with the file and its
// mistake.
std::optional<Vocabulary> folder_vocabulary(const std::string& folder);

}  // namespace llm
