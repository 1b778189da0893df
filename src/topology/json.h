// Topologies as JSON, `unisono.topology/1`. Either every device and link:
//
//   {"format": "unisono.topology/1", "name": "two hosts", "source": "measured",
//    "overhead_us": 1.5,
//    "devices": [{"name": "host0", "kind": "node"},
//                {"name": "host0.core0", "kind": "core", "inside": "host0"}, ...],
//    "links": [{"from": "host0.core0", "to": "switch", "latency_us": 2,
//               "bandwidth_gb_per_s_each_way": 12.5}, ...],
//    "ranks": ["host0.core0", ...]}
//
// or a preset with its parameters (presets.h):
//
//   {"format": "unisono.topology/1", "preset": "dgx_h100", "parameters": {"nodes": 4}}
//
// The key of a figure contains its unit: latency_{ns,us,ms} and bandwidth_{mb,gb,gib}_per_s or
// bandwidth_gbit_per_s, with _each_way (two links, one in each direction, each with the whole
// bandwidth) or _one_way (only from `from` to `to`). There is no key for the sum of both
// directions.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "topology/topology.h"

namespace unisono {

inline constexpr std::string_view kTopologyFormat = "unisono.topology/1";

std::string to_json(const Topology& topology);

// The result has passed check().
Parsed<Topology> parse_topology_json(std::string_view text);

}  // namespace unisono
