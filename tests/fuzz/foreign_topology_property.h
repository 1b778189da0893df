// The property of any bytes given as a topology of another program.
#pragma once

#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "topo/foreign.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure.
inline std::string foreign_topology_property(std::string_view text) {
  for (const auto read : {cli::read_smi_matrix, cli::read_nccl_topology, cli::read_rocm_topology}) {
    const Parsed<Topology> parsed = read(text);
    if (!parsed && (parsed.message.empty() || !parsed.position.starts_with("line "))) {
      return "refused without a message or a place";
    }
    if (parsed) {
      if (parsed.value->ranks.empty() || parsed.value->source.empty()) {
        return "taken, but without ranks or a source";
      }
      static_cast<void>(check(*parsed.value));
    }
  }
  return "";
}

}  // namespace unisono::fuzz
