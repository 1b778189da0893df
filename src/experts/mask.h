// Ranks that are out come in again by themselves.
#pragma once

#include "experts/state.h"

namespace unisono::experts {

// Called when a routing has got its number: lets in the ranks that were out until the one before.
void readmit(detail::ExchangeState& state);

}  // namespace unisono::experts
