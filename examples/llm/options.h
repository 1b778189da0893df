// Command line of llm.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "answers.h"

namespace llm {

struct Options {
  std::string model;
  std::string layout;  // empty: tp over all ranks
  std::string prompt;
  std::vector<std::string> embed;
  std::string tokens_of;  // --show-tokens
  std::string save;
  std::string compare;
  std::size_t tokens = 64;
  Precision precision = Precision::f32;
  bool same_bits = false;  // implies precision f32_in_order
  bool is_raw = false;
  bool keep_going = false;
  Sampling sampling = {};
};

extern const char* const kUsage;
// Errors: std::invalid_argument.
Options parse_options(const std::vector<std::string>& words);
// Returns a mesh with all axes: "pp=1,cp=1,ep=1,tp=2" for "tp=2". Errors: std::invalid_argument.
std::string mesh_text(const std::string& layout, int ranks);

}  // namespace llm
