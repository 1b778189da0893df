#include "imports/torch_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json_limits.h"
#include "base/words.h"
#include "cli/failure.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

constexpr double kMostRanksOfTorch = 1e6;
constexpr double kLatestUs = 1e17;  // 3000 years; times may count from 1970

// Ignores a value that is nested more deeply than any list of tensors.
double elements_in(const json& dims, int depth) {
  constexpr int kDeepestDims = 16;
  if (!dims.is_array() || depth > kDeepestDims) {
    return 0;
  }
  const bool is_tensor =
      std::ranges::all_of(dims, [](const json& value) { return value.is_number(); });
  double count = is_tensor ? 1 : 0;
  for (const json& value : dims) {
    count = is_tensor ? count * number(value, 0) : count + elements_in(value, depth + 1);
  }
  return is_tensor && dims.empty() ? 0 : count;
}

// Returns the last number in the name of the file: trace_rank_3.json, dump.3.
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

}  // namespace

void refuse_import(const std::string& path, const std::string& what) {
  throw UsageError(fmt::format("{}: {}", path, what),
                   "give traces exported by PyTorch's profiler, dumps of its flight recorder (one "
                   "file per rank), NCCL logs, files of NCCL Inspector, or an answer of NCCL's RAS",
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

std::optional<std::vector<int>> ranks_in(const json& value) {
  const std::string listed = text(value);
  if (value.is_null() || (value.is_string() && listed.empty())) {
    return std::vector<int>();
  }
  const bool is_flat = json_excess(listed, {.depth = 1}).message.empty();
  const json read = is_flat ? json::parse(listed, nullptr, false) : json();
  const json& list = value.is_string() ? read : value;
  if (!list.is_array()) {
    return std::nullopt;
  }
  std::vector<int> ranks;
  for (const json& rank : list) {
    const double given = number(rank, -1);
    if (given < 0 || given >= kMostRanksOfTorch) {
      return std::nullopt;
    }
    ranks.push_back(static_cast<int>(given));
  }
  return ranks;
}

double elements(const json& dims) {
  return elements_in(dims, 0);
}

TorchType first_type(const json& types) {
  return type_named_by_torch(types.is_array() && !types.empty() ? text(types.front()) : "");
}

void note_type(const TorchType& type, Account& account) {
  if (!type.unknown.empty()) {
    account.assume(
        fmt::format("elements of {} take 1 byte: the type is not known", in_quotes(type.unknown)));
  }
}

std::int64_t sequence_of(const json& value) {
  return static_cast<std::int64_t>(std::clamp(number(value, -1), -1.0, 1e15));
}

int rank_said(const json& value, const std::string& path) {
  const double given = number(value, rank_in_name(path));
  if (given < 0 || given >= kMostRanksOfTorch) {
    refuse_import(path, "it does not say which rank wrote it, and its name has no number");
  }
  return static_cast<int>(given);
}

std::string known_collective(const std::string& name, ImportedRank& rank) {
  const std::string_view verb = std::string_view(name).substr(0, name.find(' '));  // "send 0->1"
  if (verb == "send" || verb == "recv" || verb == "recvAnySource") {
    rank.account.leave_out(1, kSendsAndReceives);
    return {};
  }
  std::string collective = collective_named_by_torch(name);
  if (collective.empty()) {
    rank.account.leave_out(1, no_collective(name));
  }
  return collective;
}

std::string no_collective(std::string_view name) {
  return fmt::format("of {}, which is not a collective of unisono", in_quotes(name));
}

void finish_calls(ImportedRank& rank) {
  const auto is_turned = [](const ImportedCall& call) {
    return call.end_us && *call.end_us < call.start_us;
  };
  const auto turned =
      std::erase_if(rank.calls, is_turned) + std::erase_if(rank.messages, is_turned);
  rank.account.leave_out(static_cast<std::int64_t>(turned), "that end before they begin");
  const auto is_impossible = [](const ImportedCall& call) {
    const auto is_size = [](double bytes) { return bytes >= 0 && bytes <= kMostCallBytes; };
    return !is_size(call.bytes) || !is_size(call.received) || std::abs(call.start_us) > kLatestUs ||
           std::abs(call.end_us.value_or(0)) > kLatestUs;
  };
  const auto impossible =
      std::erase_if(rank.calls, is_impossible) + std::erase_if(rank.messages, is_impossible);
  rank.account.leave_out(static_cast<std::int64_t>(impossible), "with an impossible size or time");
  const auto foreign = std::erase_if(rank.calls, [&rank](const ImportedCall& call) {
    const auto group = rank.groups.find(call.group);
    return group != rank.groups.end() && !group->second.empty() &&
           std::ranges::find(group->second, rank.rank) == group->second.end();
  });
  rank.account.leave_out(static_cast<std::int64_t>(foreign),
                         fmt::format("of groups without rank {}, which wrote the file", rank.rank));
  // A watchdog sees the beginning of a call late, perhaps after later calls were issued.
  for (std::vector<ImportedCall>* calls : {&rank.calls, &rank.messages}) {
    const auto when = [](const ImportedCall& call) {
      return std::isnan(call.issued_us) ? call.start_us : call.issued_us;
    };
    if (!std::ranges::is_sorted(*calls, {}, when)) {
      std::ranges::stable_sort(*calls, {}, when);
    }
  }
}

}  // namespace unisono::cli
