// After a failure: the ranks that are left agree who they are, and meet anew. A new world shares
// nothing with the old one, so nothing that was under way there can reach it.
#pragma once

#include <memory>

#include "comm/world.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// A world of the ranks that are still there, in their old order. Blocks until each of the others
// has called too or is known to be gone, at most `timeout_ms` (0: for ever; negative: as to
// connect). Errors: evicted. `world` outlives the call, and ends for all.
std::shared_ptr<World> shrink(World& world, int timeout_ms, bool quorum);

}  // namespace unisono::comm
