// The engine of a rollout: answers prompts with transferred weights, and compares its answers with
// those of one process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <unisono/communicator.hpp>

#include "rollout/hand_over.h"

namespace rollout {

// Receives weights and answers with them, until the last weights. Collective over the world.
// `engine`: the group of the engine's ranks. Writes answers to FOLDER/step-N.answers unless
// `folder` is empty.
void serve(HandOver& hand_over, unisono::Communicator& engine, const llm::Shape& shape,
           std::size_t tokens, const std::string& folder);

// Answers with every checkpoint of the folder in this process alone. Returns true if there is a
// checkpoint and all answers equal the saved answers.
bool compare_with_checkpoints(unisono::Communicator& alone, const llm::Shape& shape,
                              std::size_t tokens, const std::filesystem::path& folder);

// Return the folder of a checkpoint, and the file with the answers of its weights.
std::filesystem::path checkpoint_of(const std::filesystem::path& folder, std::int64_t step);
std::filesystem::path answers_of(const std::filesystem::path& folder, std::int64_t step);

}  // namespace rollout
