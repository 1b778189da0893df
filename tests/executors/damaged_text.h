// A file with some damage, for tests of parsers.
#pragma once

#include <random>
#include <string>

namespace unisono::executors::testing {

// Replaces one to three bytes, or removes or repeats sequences of bytes.
std::string damaged(std::string text, std::mt19937& random);

}  // namespace unisono::executors::testing
