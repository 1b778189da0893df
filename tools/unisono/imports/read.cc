// Reading what PyTorch and NCCL left. The profiler's trace: events with a category, a time and
// arguments; a collective is a kernel of NCCL with its arguments, or an annotation
// BACKEND:COLLECTIVE. The flight recorder's dump: an entry for each collective, with its group and
// number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>

#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "imports/imports.h"
#include "imports/pickle.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

constexpr double kMostBytes = 1e15;
constexpr double kMostRanks = 1e6;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw UsageError(
      fmt::format("{}: {}", path, what),
      "traces that PyTorch's profiler exported, dumps of its flight recorder, one file "
      "a rank, or logs of NCCL",
      "unisono help trace");
}

const json& member(const json& object, const char* key) {
  static const json kNothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

double number(const json& value, double fallback) {
  const double given = value.is_number() ? value.get<double>() : fallback;
  return std::isfinite(given) ? given : fallback;
}

std::string text(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

// [0, 1], or "[0, 1]".
std::vector<int> ranks_in(const json& value) {
  static const json kNothing = json::array();
  const json read =
      value.is_string() ? json::parse(value.get<std::string>(), nullptr, false) : json();
  const json& list = value.is_string() ? read : value;
  std::vector<int> ranks;
  for (const json& rank : list.is_array() ? list : kNothing) {
    const double given = number(rank, -1);
    if (given >= 0 && given < kMostRanks) {
      ranks.push_back(static_cast<int>(given));
    }
  }
  return ranks;
}

// The elements of all tensors in nested lists of their dimensions: [[4, 2], [3]] has 11. What is
// nested deeper than any list of tensors is none.
double elements(const json& dims, int depth = 0) {
  constexpr int kDeepest = 16;
  if (!dims.is_array() || depth > kDeepest) {
    return 0;
  }
  const bool is_tensor =
      std::ranges::all_of(dims, [](const json& value) { return value.is_number(); });
  double count = is_tensor ? 1 : 0;
  for (const json& value : dims) {
    count = is_tensor ? count * number(value, 0) : count + elements(value, depth + 1);
  }
  return is_tensor && dims.empty() ? 0 : count;
}

// The last number in the name of the file: trace_rank_3.json, dump.3.
int rank_in_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::size_t last = name.find_last_of("0123456789");
  if (last == std::string::npos) {
    return -1;
  }
  std::size_t first = last;
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') {
    --first;
  }
  return last - first < 7 ? std::stoi(name.substr(first, last - first + 1)) : -1;
}

// The rank that a file says it is of, or else its name.
int rank_said(const json& value, const std::string& path) {
  const double given = number(value, rank_in_name(path));
  if (given < 0 || given >= kMostRanks) {
    refuse(path, "it does not say which rank it is of, and its name has no number");
  }
  return static_cast<int>(given);
}

// What a rank has in all: all_gather and gather are told by what it sends.
double whole_bytes(const std::string& collective, double bytes, double ranks) {
  const bool by_part = collective == "all_gather" || collective == "gather";
  return by_part ? bytes * std::max(1.0, ranks) : bytes;
}

// That of the first tensor of a list of types; that of bytes where there is none.
TorchType first_type(const json& types) {
  return type_named_by_torch(types.is_array() && !types.empty() ? text(types.front()) : "");
}

std::size_t size_of_group(const ImportedRank& rank, const std::string& group) {
  const auto found = rank.groups.find(group);
  return found == rank.groups.end() ? 1 : found->second.size();
}

void read_groups(const json& info, ImportedRank& rank) {
  const int size =
      static_cast<int>(std::clamp(number(member(info, "world_size"), 0), 0.0, kMostRanks));
  for (const json& group : member(info, "pg_config")) {
    std::string name = text(member(group, "pg_name"));
    std::vector<int> ranks = ranks_in(member(group, "ranks"));
    // Several groups may have all ranks. Where none says that it is the default one, any of them is
    // as good.
    const std::string description = text(member(group, "pg_desc"));
    const bool is_all = static_cast<int>(ranks.size()) == size;
    if (description == "default_pg" || (description.empty() && is_all)) {
      name = "world";
    }
    if (!name.empty() && !ranks.empty()) {
      rank.groups[name] = ranks;
    }
  }
  if (!rank.groups.contains("world")) {
    std::vector<int> all(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) {
      all[static_cast<std::size_t>(i)] = i;
    }
    rank.groups["world"] = all;
  }
}

// A kernel says its group, an annotation does not: there is one group then, or it cannot be told.
std::string group_of(const json& arguments, const ImportedRank& rank) {
  const std::string name = text(member(arguments, "Process Group Name"));
  return !name.empty() && rank.groups.contains(name) ? name : "world";
}

// Empty, and counted: it is none that is known.
std::string known_collective(const std::string& name, ImportedRank& rank) {
  if (name == "send" || name == "recv" || name == "recvAnySource") {
    ++rank.sends;
    return {};
  }
  std::string collective = collective_named_by_torch(name);
  rank.unknown += collective.empty() ? 1 : 0;
  return collective;
}

std::int64_t sequence_of(const json& value) {
  return static_cast<std::int64_t>(std::clamp(number(value, -1), -1.0, 1e15));
}

void add_kernel(const json& event, double base_us, ImportedRank& rank) {
  const json& arguments = member(event, "args");
  const std::string name = text(member(arguments, "Collective name"));
  const std::string collective = known_collective(name, rank);
  if (collective.empty()) {
    return;
  }
  const TorchType type = type_named_by_torch(text(member(arguments, "dtype")));
  const double in = number(member(arguments, "In msg nelems"), 0);
  const double out = number(member(arguments, "Out msg nelems"), 0);
  const double start = base_us + number(member(event, "ts"), 0);
  rank.calls.push_back({.group = group_of(arguments, rank),
                        .collective = collective,
                        .dtype = type.name,
                        .bytes = std::clamp(std::max(in, out) * type.bytes, 0.0, kMostBytes),
                        .start_us = start,
                        .end_us = start + number(member(event, "dur"), 0),
                        .sequence = sequence_of(member(arguments, "Seq"))});
}

void add_annotation(const json& event, const std::string& name, double base_us,
                    ImportedRank& rank) {
  const std::string collective = known_collective(name, rank);
  if (collective.empty()) {
    return;
  }
  const json& arguments = member(event, "args");
  const TorchType type = first_type(member(arguments, "Input type"));
  const double count = elements(member(arguments, "Input Dims"));
  const double size = static_cast<double>(size_of_group(rank, "world"));
  const double start = base_us + number(member(event, "ts"), 0);
  rank.calls.push_back(
      {.group = "world",
       .collective = collective,
       .dtype = type.name,
       .bytes = std::clamp(whole_bytes(collective, count * type.bytes, size), 0.0, kMostBytes),
       .start_us = start,
       .end_us = start + number(member(event, "dur"), 0)});
}

bool is_backend(std::string_view name) {
  return name == "nccl" || name == "gloo" || name == "unisono" || name == "mpi" || name == "ucc" ||
         name == "xccl";
}

void sort_calls(ImportedRank& rank) {
  std::ranges::stable_sort(rank.calls, {}, &ImportedCall::start_us);
}

}  // namespace

ImportedRank read_kineto(const json& document, const std::string& path) {
  ImportedRank rank{.path = path};
  const json& info = member(document, "distributedInfo");
  rank.rank = rank_said(member(info, "rank"), path);
  rank.host = text(member(document, "host_name"));
  read_groups(info, rank);
  const double base_us = number(member(document, "baseTimeNanoseconds"), 0) / 1000;
  const json& events = member(document, "traceEvents");
  const bool has_kernels = std::ranges::any_of(events, [](const json& event) {
    return text(member(event, "cat")) == "kernel" &&
           member(member(event, "args"), "Collective name").is_string();
  });
  for (const json& event : events) {
    if (text(member(event, "ph")) != "X") {
      continue;
    }
    const std::string category = text(member(event, "cat"));
    if (has_kernels) {
      if (category == "kernel") {
        add_kernel(event, base_us, rank);
      }
      continue;
    }
    const std::string name = text(member(event, "name"));
    const std::size_t colon = std::min(name.find(':'), name.size());
    if (category == "user_annotation" && is_backend(std::string_view(name).substr(0, colon))) {
      add_annotation(event, name.substr(std::min(colon + 1, name.size())), base_us, rank);
      rank.has_groups = rank.groups.size() < 2;
      rank.has_sizes = false;  // but with record_shapes
    }
  }
  sort_calls(rank);
  return rank;
}

ImportedRank read_flight_recorder(const json& document, const std::string& path) {
  ImportedRank rank{.path = path};
  rank.rank = rank_said(member(document, "rank"), path);
  for (const auto& [id, group] : member(document, "pg_config").items()) {
    const bool is_all = text(member(group, "desc")) == "default_pg";
    rank.groups[is_all ? "world" : id] = ranks_in(member(group, "ranks"));
  }
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
    const bool is_kernel = name.starts_with("nccl:") || name.starts_with("xccl:");
    const double discovered = number(member(entry, "time_discovered_started_ns"), created);
    const double completed = number(member(entry, "time_discovered_completed_ns"), -1);
    rank.calls.push_back({.group = group,
                          .collective = collective,
                          .dtype = type.name,
                          .bytes = std::clamp(bytes, 0.0, kMostBytes),
                          .start_us = (is_kernel ? discovered : created) / 1000,
                          .end_us = completed < 0 ? std::nullopt : std::optional(completed / 1000),
                          .sequence = sequence_of(member(entry, "collective_seq_id"))});
  }
  sort_calls(rank);
  return rank;
}

namespace {

ImportedRank read_import(const ImportFile& file) {
  json document;
  if (is_pickle(file.text)) {
    const Parsed<json> parsed = parse_pickle(file.text);
    if (!parsed) {
      refuse(file.path, parsed.position + ": " + parsed.message);
    }
    document = *parsed.value;
  } else {
    document = json::parse(file.text, nullptr, false);
  }
  if (!document.is_object()) {
    if (const std::string foreign = foreign_file(file.text); !foreign.empty()) {
      refuse(file.path, "it is " + foreign + ", which is not read");
    }
    refuse(file.path, "it is neither JSON, nor a pickle of a dict, nor a log of NCCL");
  }
  if (member(document, "traceEvents").is_array()) {
    return read_kineto(document, file.path);
  }
  if (member(document, "entries").is_array()) {
    return read_flight_recorder(document, file.path);
  }
  refuse(file.path, "it has neither \"traceEvents\" nor \"entries\"");
}

}  // namespace

std::vector<ImportedRank> read_imports(const std::vector<ImportFile>& files) {
  const auto is_log = [](const ImportFile& file) {
    return !is_pickle(file.text) && !file.text.starts_with("{") && is_nccl_log(file.text);
  };
  const auto first_log = std::ranges::find_if(files, is_log);
  if (first_log != files.end()) {
    const auto other = std::ranges::find_if_not(files, is_log);
    if (other != files.end()) {
      refuse(other->path, fmt::format("it is not a log of NCCL, and {} is one", first_log->path));
    }
    return read_nccl_logs(files);
  }
  std::vector<ImportedRank> ranks;
  std::ranges::transform(files, std::back_inserter(ranks), read_import);
  return ranks;
}

}  // namespace unisono::cli
