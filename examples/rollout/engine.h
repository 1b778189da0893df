// The engine of a rollout: answers prompts with weights that were handed over, and compares its
// answers with those of one process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <unisono/communicator.hpp>

#include "rollout/hand_over.h"

namespace rollout {

// Takes weights and answers with them until the last ones. Collective over the world; `engine`: the
// group of these ranks. Answers go to FOLDER/step-N.answers, unless the folder is empty.
void serve(HandOver& hand_over, unisono::Communicator& engine, const llm::Shape& shape,
           std::size_t tokens, const std::string& folder);

// Answers with every checkpoint of the folder on this process alone. Returns true if there are any,
// and the saved answers are the same.
bool compare_with_checkpoints(unisono::Communicator& alone, const llm::Shape& shape,
                              std::size_t tokens, const std::filesystem::path& folder);

// The folder of a checkpoint, and the file of the answers with these weights.
std::filesystem::path checkpoint_of(const std::filesystem::path& folder, std::int64_t step);
std::filesystem::path answers_of(const std::filesystem::path& folder, std::int64_t step);

}  // namespace rollout
