// Parameters of an algorithm's schedule besides the ranks and the root.
//
// In text they follow the name of the algorithm: "knomial:radix=4", "hierarchical:local=8x4".
#pragma once

#include <array>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace unisono {

// 0 and {}: not set, the default of the algorithm.
struct AlgorithmParameters {
  // Sizes of groups, the innermost first: `local=8x4` is 8 ranks in a group, 4 groups in a larger
  // one, and as many of those as there are.
  using Levels = std::array<int, 4>;

  int radix = 0;  // how many subtrees a node of a tree has at a level, less one; ranks in a round
  int segments = 0;   // chunks that follow each other in a pipeline
  int aggregate = 0;  // the most chunks in a message
  Levels local = {};

  friend auto operator<=>(const AlgorithmParameters&, const AlgorithmParameters&) = default;
};

// "knomial:radix=4" -> "knomial".
std::string_view base_name(std::string_view name);

// "radix", "segments": those that are set.
std::vector<std::string_view> names_of(const AlgorithmParameters& parameters);

// ":radix=4" for each one that is set; "" if none is.
std::string to_text(const AlgorithmParameters& parameters);

// All that the name says: "knomial:radix=4" -> radix 4. Throws Error(usage) if it is malformed, out
// of range, or not set in `taken`.
AlgorithmParameters parse_parameters(std::string_view name, const AlgorithmParameters& taken);

// Returns the values of `parameters` that are set, and the others from `defaults`.
AlgorithmParameters or_defaults(const AlgorithmParameters& parameters,
                                const AlgorithmParameters& defaults);
// The opposite: without those that are as in `defaults`.
AlgorithmParameters without_defaults(const AlgorithmParameters& parameters,
                                     const AlgorithmParameters& defaults);

}  // namespace unisono
