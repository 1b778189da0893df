// Checks a step before anything about it can be proved.
#pragma once

#include <string>

#include "step/step.h"

namespace unisono::step {

// Returns the first mistake in the step's data, such as an unknown name; empty: none. All functions
// that walk through a step require that there is none.
std::string problem_of(const Step& step);

}  // namespace unisono::step
