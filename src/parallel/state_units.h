// The parameters that the tests of sharded states share.
#pragma once

#include <vector>

#include "unisono/parallel/sharded_state.hpp"

namespace unisono::parallel {

inline const std::vector<std::vector<Parameter>> kUnits = {
    {{.name = "a", .count = 5, .decays = false}, {.name = "b", .count = 8}},
    {},
    {{.name = "c", .count = 1}},
    {{.name = "d", .count = 64}, {.name = "e", .count = 3}}};

}  // namespace unisono::parallel
