// Automatic end of a rank's exclusion.
#pragma once

#include "experts/state.h"

namespace unisono::experts {

// Called when a routing has its number: includes the ranks that were excluded until the previous
// one.
void readmit(detail::ExpertExchangeState& state);

}  // namespace unisono::experts
