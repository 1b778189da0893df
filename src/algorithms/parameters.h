// Parameters of an algorithm's schedule, in addition to the ranks and the root.
//
// In text they follow the name of the algorithm: "knomial:radix=4", "hierarchical:local=8x4".
#pragma once

#include <array>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace unisono {

// 0 and {} mean that a parameter is not set; the algorithm's default applies then.
struct AlgorithmParameters {
  // Sizes of the groups, the innermost first: `local=8x4` makes groups of 8 ranks, larger groups of
  // 4 groups, and a top level that contains all larger groups.
  using Levels = std::array<int, 4>;

  int radix = 0;  // how many subtrees a node of a tree has at a level, less one; ranks in a round
  int segments = 0;   // chunks that follow each other in a pipeline
  int aggregate = 0;  // the most chunks in a message
  Levels local = {};

  friend auto operator<=>(const AlgorithmParameters&, const AlgorithmParameters&) = default;
};

// Converts "knomial:radix=4" to "knomial".
std::string_view base_name(std::string_view name);

// Returns the names of the parameters that are set, such as "radix" and "segments".
std::vector<std::string_view> names_of(const AlgorithmParameters& parameters);

// Returns ":radix=4" for the parameters that are set; "" if none is set.
std::string to_text(const AlgorithmParameters& parameters);

// Returns all parameters in a name: "knomial:radix=4" sets radix to 4. Throws Error(usage) if a
// parameter is malformed, out of range, or not set in `taken`.
AlgorithmParameters parse_parameters(std::string_view name, const AlgorithmParameters& taken);

// Returns the values of `parameters` that are set, and the others from `defaults`.
AlgorithmParameters or_defaults(const AlgorithmParameters& parameters,
                                const AlgorithmParameters& defaults);
// The opposite of or_defaults(): returns the parameters without the values that equal `defaults`.
AlgorithmParameters without_defaults(const AlgorithmParameters& parameters,
                                     const AlgorithmParameters& defaults);

}  // namespace unisono
