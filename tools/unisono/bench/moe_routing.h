// The experts that the tokens of `unisono bench moe` choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace unisono::cli {

struct MoeCase {
  std::size_t tokens = 0;  // of each rank
  std::size_t hidden = 0;
  int experts = 0;
  int k = 0;
  std::string routing;                    // "uniform", "zipf", "one", or "file"
  std::vector<std::int32_t> chosen = {};  // of a file: [tokens of all ranks][k]
  std::size_t left_out = 0;  // of a file: its last tokens, if the ranks do not divide their number
};

// Draws k different experts for each token of this rank. zipf: expert i has the weight 1 / (i + 1).
// one: all tokens choose the first k experts, so that few ranks get everything.
std::vector<std::int32_t> draw_routing(const MoeCase& row, int rank);

// Reads a file with one token per line: its experts, separated by spaces, tabs or commas. All lines
// have the same number of entries; -1 is no expert. The tokens are divided among the ranks in
// contiguous, equal parts; the remaining tokens are left out. If the file cannot be read, throws
// UsageError with the line.
MoeCase read_routing(const std::string& path, std::size_t hidden, int ranks);
// Returns a sentence about the tokens that are left out; empty: none are left out.
std::string left_out_text(const MoeCase& row, int ranks);

}  // namespace unisono::cli
