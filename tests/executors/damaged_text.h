// A file with some damage, for tests of parsers.
#pragma once

#include <random>
#include <string>

namespace unisono::executors::testing {

// One to three bytes are replaced, or rows of them left out or doubled.
std::string damaged(std::string text, std::mt19937& random);

}  // namespace unisono::executors::testing
