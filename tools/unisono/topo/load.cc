#include <fmt/format.h>

#include "base/json_reader.h"
#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "topo/foreign.h"
#include "topo/topo.h"
#include "topology/json.h"
#include "topology/presets.h"

namespace unisono::cli {
namespace {

// First tries the formats of other programs that can be read, and then recognises formats that
// cannot be read.
Parsed<Topology> parse_topology(const std::string& target, const std::string& text) {
  if (is_smi_matrix(text)) {
    return read_smi_matrix(text);
  }
  if (is_nccl_topology(text)) {
    return read_nccl_topology(text);
  }
  if (is_rocm_topology(text)) {
    return read_rocm_topology(text);
  }
  Parsed<Topology> parsed = parse_topology_json(text);
  if (!parsed) {
    const std::string foreign = foreign_file(text);
    if (!foreign.empty() || !begins_as_json(text)) {
      throw UsageError(foreign.empty()
                           ? fmt::format("{} is not a topology that unisono reads", target)
                           : fmt::format("{} is {}, which unisono does not read", target, foreign),
                       "it reads unisono.topology/1, the matrix of nvidia-smi topo -m, the report "
                       "of rocm-smi --showtopo and the XML of NCCL_TOPO_DUMP_FILE",
                       "unisono topo --discover --json > host.json describes this machine");
    }
  }
  return parsed;
}

}  // namespace

Topology load_topology(const std::string& target) {
  if (is_schedule_file(target)) {
    const std::string text = read_text_file(target);
    Parsed<Topology> parsed = parse_topology(target, text);
    if (parsed) {
      // Foreign formats are converted here, and may contain impossible values.
      if (const std::optional<JsonProblem> problem = check(*parsed.value)) {
        parsed = Parsed<Topology>::failure(problem->message, problem->position);
      }
    }
    if (!parsed) {
      throw UsageError(
          fmt::format("{}{}: {}", target, place_in(text, parsed.position), parsed.message), {},
          "docs/formats/topology.md describes the format");
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
