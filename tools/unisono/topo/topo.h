// The sources of topologies, for `topo` and `sim`.
#pragma once

#include <string>

#include "topology/topology.h"

namespace unisono::cli {

// Loads a preset ("dgx_h100:nodes=4"), or a file if the name has a dot or exists. Throws UsageError
// with the place of the error.
Topology load_topology(const std::string& target);

// "an operation starts in 5.73 us, a message costs 0.123 us more, 38 % of the links' bandwidth".
std::string protocol_text(const Protocol& protocol);

// Describes this host: its packages, cores, GPUs and NICs, with a rank on every core, or on every
// GPU if there are GPUs. Links have typical figures, because hwloc knows none. Throws UsageError if
// unisono was built without hwloc.
Topology discover_host();

}  // namespace unisono::cli
