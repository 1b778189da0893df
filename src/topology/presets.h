// Topologies of well-known machines, by name. Figures are for one direction, as published by
// vendors or in papers; a preset's `source` names the publication.
#pragma once

#include <span>
#include <string_view>

#include "base/parsed.h"
#include "topology/preset.h"
#include "topology/topology.h"

namespace unisono {

std::span<const Preset* const> presets();
const Preset* find_preset(std::string_view name);

// The position of a failure is the name of the invalid parameter, or "preset".
Parsed<Topology> make_preset(std::string_view name, std::span<const PresetValue> values);

// Parses "fat_tree" or "fat_tree:hosts=64,ports=8".
Parsed<Topology> make_preset(std::string_view text);

}  // namespace unisono
