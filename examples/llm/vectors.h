// Converts texts to vectors with an encoder: prints them (--embed), saves them or compares them.
#pragma once

#include <string>
#include <unisono/unisono.hpp>

#include "options.h"
#include "tokenizer.h"

namespace llm {

// Errors: std::runtime_error if the folder has no tokenizer with the model's number of words.
Tokenizer encoder_tokenizer(const std::string& folder);

// Collective. Returns false if the vectors differ from those of --compare. Errors:
// std::invalid_argument for options that an encoder does not support; errors of Encoder.
bool run_encoder(unisono::Communicator& world, const Options& options, const std::string& layout);

}  // namespace llm
