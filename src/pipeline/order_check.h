// The part of verify() that checks the actions without playing them.
#pragma once

#include <vector>

#include "pipeline/findings.h"

namespace unisono::pipeline {

inline constexpr std::size_t kMostFindings = 100;

// REQUIRES: check() passes, and the transfers are included.
std::vector<Finding> check_order(const Pipeline& pipeline);

}  // namespace unisono::pipeline
