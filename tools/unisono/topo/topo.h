// The sources of topologies, for `topo` and `sim`.
#pragma once

#include <string>

#include "topology/topology.h"

namespace unisono::cli {

// A preset ("dgx_h100:nodes=4"), or a file: what has a dot or exists. Throws UsageError with the
// place of the mistake.
Topology load_topology(const std::string& target);

// "an operation starts in 5.73 us, a message costs 0.123 us more, 38 % of the links' bandwidth".
std::string protocol_text(const Protocol& protocol);

// This host: its packages, cores, GPUs and NICs; a rank on every core, or on every GPU if there are
// any. Links have usual figures, as hwloc knows none. Throws UsageError where built without hwloc.
Topology discover_host();

}  // namespace unisono::cli
