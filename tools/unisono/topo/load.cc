#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "cli/failure.h"
#include "cli/target.h"
#include "topo/topo.h"
#include "topology/json.h"
#include "topology/presets.h"

namespace unisono::cli {

std::string read_document(const std::string& path) {
  constexpr std::streamoff kLargest = std::streamoff{64} << 20U;
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    throw UsageError(fmt::format("{} is a folder", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UsageError(fmt::format("cannot read {}", path), "no such file, or no permission");
  }
  std::string text;
  std::string block(1U << 16U, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (static_cast<std::streamoff>(text.size()) > kLargest) {
      throw UsageError(fmt::format("{} is larger than 64 MiB", path));
    }
  }
  return text;
}

Topology load_topology(const std::string& target) {
  if (is_schedule_file(target)) {
    const std::string text = read_document(target);
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
