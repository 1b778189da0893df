// Texts as vectors, by an encoder: what --embed prints, and what --save and --compare keep.
#pragma once

#include <string>
#include <unisono/unisono.hpp>

#include "options.h"
#include "tokenizer.h"

namespace llm {

// Errors: std::runtime_error, for a folder without a tokenizer of as many words as its model has.
Tokenizer encoder_tokenizer(const std::string& folder);

// All ranks call it. Whether the vectors are those of --compare; true without it. Errors:
// std::invalid_argument, for options that an encoder does not have; as of Encoder.
bool run_encoder(unisono::Communicator& world, const Options& options, const std::string& layout);

}  // namespace llm
