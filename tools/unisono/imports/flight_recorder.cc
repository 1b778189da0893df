// Dumps of PyTorch's flight recorder: an entry for each call, with its group and number.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/words.h"
#include "imports/imports.h"
#include "imports/torch_values.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kWorld = "default_pg";

// Returns a time in nanoseconds; below 0: it has not happened, for which JSON has 0 and a pickle
// None.
double moment(const json& entry, const char* key) {
  const double ns = number(member(entry, key), -1);
  return ns > 0 ? ns : -1;
}

// Returns the innermost stack frame of the user's program: "train.py:120".
std::string place_of(const json& entry) {
  for (const json& frame : member(entry, "frames")) {
    const std::string file = text(member(frame, "filename"));
    if (!file.empty() && file.find("torch/") == std::string::npos) {
      return file.substr(file.rfind('/') + 1) + ":" +
             std::to_string(static_cast<std::int64_t>(number(member(frame, "line"), 0)));
    }
  }
  return {};
}

// Returns the name of a message's group: "4->6" for "send 0->1" and "recv 1<-0" in a group of the
// ranks 4 and 6. Empty: the name does not contain the ranks.
std::string message_of(const std::string& name, const std::vector<int>& members) {
  const std::size_t space = std::min(name.find(' '), name.size() - 1);
  const std::size_t arrow = std::min(name.find("->"), name.find("<-"));
  if (arrow == std::string::npos || arrow < space) {
    return {};
  }
  const auto rank = [&members](std::string_view digits) {
    std::size_t place = members.size();
    std::from_chars(digits.data(), digits.data() + digits.size(), place);
    return place < members.size() ? members[place] : -1;
  };
  const std::string_view text(name);
  int from = rank(text.substr(space + 1, arrow - space - 1));
  int to = rank(text.substr(arrow + 2));
  if (name[arrow] == '<') {
    std::swap(from, to);
  }
  return from < 0 || to < 0 ? "" : std::to_string(from) + "->" + std::to_string(to);
}

class DumpReader {
 public:
  DumpReader(const json& document, const std::string& path) : rank_{.path = path} {
    rank_.has_seen_ends = true;
    rank_.account = {.source = "PyTorch's flight recorder", .unit = "call"};
    rank_.rank = rank_said(member(document, "rank"), path);
    for (const auto& [id, group] : member(document, "pg_config").items()) {
      const std::string about = text(member(group, "desc"));
      const std::string name = about == kWorld ? "world" : id;
      rank_.groups[name] = ranks_in(member(group, "ranks"));
      if (about != kWorld && about != "undefined" && !about.empty()) {
        rank_.axes[name] = about;
      }
    }
    std::erase_if(rank_.groups, [](const auto& group) { return group.second.empty(); });
  }

  ImportedRank read(const json& entries) {
    for (const json& entry : entries) {
      add(entry);
    }
    std::erase_if(rank_.groups, [](const auto& group) { return group.second.empty(); });
    finish_calls(rank_);
    return std::move(rank_);
  }

 private:
  void add(const json& entry) {
    const json& process_group = member(entry, "process_group");
    const bool is_named = process_group.is_array() && process_group.size() == 2;
    const std::string group = is_named && text(process_group[1]) != kWorld ? text(process_group[0])
                                                                           : std::string("world");
    const std::string whole = text(member(entry, "profiling_name"));
    const std::string name = whole.substr(std::min(whole.find(':') + 1, whole.size()));
    const bool is_p2p = member(entry, "is_p2p").is_boolean() && member(entry, "is_p2p").get<bool>();
    const bool is_kernel = is_device_backend(whole.substr(0, whole.find(':')));
    if (is_p2p || name.starts_with("send") || name.starts_with("recv")) {
      add_message(entry, group, name, is_kernel);
      return;
    }
    const std::string collective = known_collective(name, rank_);
    if (!collective.empty()) {
      rank_.calls.push_back(call_of(entry, group, collective, is_kernel));
    }
  }

  void add_message(const json& entry, const std::string& group, const std::string& name,
                   bool is_kernel) {
    const std::string ranks = message_of(name, rank_.groups[group]);
    if (ranks.empty()) {
      rank_.account.leave_out(1, kSendsAndReceives);
      return;
    }
    rank_.messages.push_back(call_of(entry, ranks + (group == "world" ? "" : " in " + group),
                                     name.substr(0, name.find(' ')), is_kernel));
  }

  // A coalesced call may have tensors of several types.
  static double bytes_of(const json& sizes, const json& types, const TorchType& first) {
    if (!sizes.is_array() || !types.is_array() || sizes.size() != types.size()) {
      return elements(sizes) * first.bytes;
    }
    double bytes = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      bytes += elements(sizes[i]) * type_named_by_torch(text(types[i])).bytes;
    }
    return bytes;
  }

  ImportedCall call_of(const json& entry, const std::string& group, const std::string& collective,
                       bool is_kernel) {
    const TorchType of_input = first_type(member(entry, "input_dtypes"));
    const TorchType type =
        of_input.name.empty() ? first_type(member(entry, "output_dtypes")) : of_input;
    note_type(type, rank_.account);
    const double sent = bytes_of(member(entry, "input_sizes"), member(entry, "input_dtypes"), type);
    const double received =
        bytes_of(member(entry, "output_sizes"), member(entry, "output_dtypes"), type);
    const double created = number(member(entry, "time_created_ns"), 0);
    const double started = moment(entry, "time_discovered_started_ns");
    double completed = moment(entry, "time_discovered_completed_ns");
    const bool was_seen = completed >= 0;
    const std::string state = text(member(entry, "state"));
    if (!state.empty() && state != "scheduled" && state != "started" && state != "completed") {
      rank_.account.assume("the state of calls that are " + in_quotes(state) +
                           " is not known: their times count");
    }
    if (completed < 0 && state == "completed") {
      completed = is_kernel && started > 0 ? started : created;
      rank_.account.assume("calls without a completion time took no time");
    }
    const double took_ms = number(member(entry, "duration_ms"), -1);
    if (is_kernel && was_seen && took_ms < 0) {
      rank_.account.assume(
          "calls took from when PyTorch's watchdog saw them begin to when it saw "
          "them end: TORCH_NCCL_ENABLE_TIMING=1 records how long they took");
    }
    // The recorder sees a kernel when it starts. It sees a call of a CPU backend only when it has
    // ended.
    const double start = is_kernel && started > 0 ? started : created;
    return {.group = group,
            .collective = collective,
            .dtype = type.name,
            .bytes = sent < 0 ? sent : std::max(sent, received),
            .start_us = start / 1000,
            .end_us = completed < 0 ? std::nullopt : std::optional(completed / 1000),
            .sequence = sequence_of(member(entry, "collective_seq_id")),
            .received = collective == "all_to_all" ? received : 0,
            .issued_us = created > 0 ? created / 1000 : kUnknownUs,
            .took_us = took_ms >= 0 && completed >= 0 ? took_ms * 1000 : kUnknownUs,
            .is_begun = !is_kernel || started > 0,
            .place = completed < 0 ? place_of(entry) : std::string()};
  }

  ImportedRank rank_;
};

}  // namespace

ImportedRank read_flight_recorder(const json& document, const std::string& path) {
  return DumpReader(document, path).read(member(document, "entries"));
}

}  // namespace unisono::cli
