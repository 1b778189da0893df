// Ends the exclusion of ranks automatically.
#pragma once

#include "experts/state.h"

namespace unisono::experts {

// Includes the ranks whose exclusion ended with the previous routing. Called after a routing gets
// its number.
void readmit(detail::ExpertExchangeState& state);

}  // namespace unisono::experts
