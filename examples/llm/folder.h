// A model as a folder of Hugging Face holds it: config.json, model.safetensors (or several files
// and model.safetensors.index.json), and perhaps tokenizer.json.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "vocabulary.h"
#include "weights.h"

namespace llm {

// Errors: std::runtime_error with the file and its mistake, also for a model other than Llama.
std::unique_ptr<Weights> folder_weights(const std::string& folder);
// Returns nothing if there is no tokenizer.json. Errors: as above.
std::optional<Vocabulary> folder_vocabulary(const std::string& folder);

}  // namespace llm
