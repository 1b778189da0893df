#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "topo/topo.h"
#include "topology/json.h"
#include "topology/presets.h"

namespace unisono::cli {

Topology load_topology(const std::string& target) {
  if (is_schedule_file(target)) {
    const std::string text = read_text_file(target);
    Parsed<Topology> parsed = parse_topology_json(text);
    if (!parsed) {
      throw UsageError(
          fmt::format("{}{}: {}", target, place_in(text, parsed.position), parsed.message), {},
          "docs/formats/topology.md says what belongs where");
    }
    return std::move(*parsed.value);
  }
  Parsed<Topology> made = make_preset(target);
  if (!made) {
    throw UsageError(made.message, {}, "unisono topo --presets");
  }
  return std::move(*made.value);
}

}  // namespace unisono::cli
