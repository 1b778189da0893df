// Which protocol of a topology an operation takes, and what its messages cost then.
#pragma once

#include <vector>

#include "model/simulator/paths.h"
#include "model/simulator/play.h"

namespace unisono::model {

// Chooses the protocol under which the blocks, alone on the topology, would end first, adds what it
// costs to their messages, and returns what it takes to start. The estimate knows the longest chain
// of messages and the busiest rank, and no links that are shared. REQUIRES: there are protocols.
double choose_protocol(std::vector<PlayBlock>& blocks, const PathTable& paths);

}  // namespace unisono::model
