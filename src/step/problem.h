// Checks a step before anything about it is proved.
#pragma once

#include <string>

#include "step/step.h"

namespace unisono::step {

// Returns the first error in the step's data, such as an unknown name; empty if there is none. All
// functions that walk through a step require that there is none.
std::string problem_of(const Step& step);

}  // namespace unisono::step
