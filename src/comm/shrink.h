// Shrinks a world after a failure: the remaining ranks agree on their members and connect again.
// The new world shares nothing with the old one, so no operation of the old world can affect it.
#pragma once

#include <memory>

#include "comm/world.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// Returns a world of the remaining ranks, in their old order. Blocks until every other rank has
// also called or is known to be gone, but at most for `timeout_ms` (0: no limit; negative: the
// limit for connecting). Errors: evicted. `world` ends on all ranks, and must outlive the call.
std::shared_ptr<World> shrink(World& world, int timeout_ms, bool quorum);

}  // namespace unisono::comm
