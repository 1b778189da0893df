// Dumps of PyTorch's flight recorder: an entry for each call, with its group and number.
#include <algorithm>
#include <optional>
#include <string>

#include "imports/imports.h"
#include "imports/torch_values.h"

namespace unisono::cli {

using nlohmann::json;

ImportedRank read_flight_recorder(const json& document, const std::string& path) {
  ImportedRank rank{.path = path};
  rank.account = {.source = "PyTorch's flight recorder", .unit = "call"};
  rank.rank = rank_said(member(document, "rank"), path);
  for (const auto& [id, group] : member(document, "pg_config").items()) {
    const bool is_all = text(member(group, "desc")) == "default_pg";
    rank.groups[is_all ? "world" : id] = ranks_in(member(group, "ranks"));
  }
  std::erase_if(rank.groups, [](const auto& group) { return group.second.empty(); });
  for (const json& entry : member(document, "entries")) {
    const json& process_group = member(entry, "process_group");
    const bool is_named = process_group.is_array() && process_group.size() == 2;
    const std::string group = is_named && text(process_group[1]) != "default_pg"
                                  ? text(process_group[0])
                                  : std::string("world");
    const std::string name = text(member(entry, "profiling_name"));
    const bool is_p2p = member(entry, "is_p2p").is_boolean() && member(entry, "is_p2p").get<bool>();
    const std::string collective = known_collective(
        is_p2p ? "send" : name.substr(std::min(name.find(':') + 1, name.size())), rank);
    if (collective.empty()) {
      continue;
    }
    const TorchType of_input = first_type(member(entry, "input_dtypes"));
    const TorchType type =
        of_input.name.empty() ? first_type(member(entry, "output_dtypes")) : of_input;
    const double bytes =
        std::max(elements(member(entry, "input_sizes")), elements(member(entry, "output_sizes"))) *
        type.bytes;
    const double created = number(member(entry, "time_created_ns"), 0);
    // A kernel is seen when it starts. A CPU backend is only looked at when it has ended.
    const bool is_kernel = is_device_backend(name.substr(0, name.find(':')));
    const double discovered = number(member(entry, "time_discovered_started_ns"), created);
    double completed = number(member(entry, "time_discovered_completed_ns"), -1);
    if (completed < 0 && text(member(entry, "state")) == "completed") {
      completed = is_kernel ? discovered : created;
      rank.account.assume("calls without a completion time took no time");
    }
    rank.calls.push_back({.group = group,
                          .collective = collective,
                          .dtype = type.name,
                          .bytes = std::clamp(bytes, 0.0, kMostCallBytes),
                          .start_us = (is_kernel ? discovered : created) / 1000,
                          .end_us = completed < 0 ? std::nullopt : std::optional(completed / 1000),
                          .sequence = sequence_of(member(entry, "collective_seq_id"))});
  }
  finish_calls(rank);
  return rank;
}

}  // namespace unisono::cli
