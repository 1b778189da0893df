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
  std::size_t left_out = 0;               // of a file: its last tokens, which ranks do not divide
};

// k different experts for each token of this rank. zipf: expert i with odds of 1 / (i + 1). one:
// the first k of all, so that few ranks get everything.
std::vector<std::int32_t> draw_routing(const MoeCase& row, int rank);

// A token a line, its experts separated by spaces, tabs or commas; as many on each, -1: none. The
// tokens are dealt to the ranks in contiguous, equal parts; what is left over is left out. Throws
// UsageError for what cannot be read, with the line.
MoeCase read_routing(const std::string& path, std::size_t hidden, int ranks);
// A sentence about the tokens that are left out; empty: none are.
std::string left_out_text(const MoeCase& row, int ranks);

}  // namespace unisono::cli
