// What is wrong with a step before anything of it can be proved.
#pragma once

#include <string>

#include "step/step.h"

namespace unisono::step {

// What is wrong with it as data, such as a name that nothing has; empty: nothing. Everything that
// goes through a step requires that.
std::string problem_of(const Step& step);

}  // namespace unisono::step
