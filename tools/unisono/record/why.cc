#include "record/views.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cli/failure.h"
#include "record/numbers.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

// Recordings of others have no Chinese.
Text text_of(const std::string& english, const ordered_json& chinese, const char* key) {
  return {english, chinese.value(key, english)};
}

std::vector<Text> details_of(const ordered_json& row, const ordered_json& chinese) {
  const auto english = row.value("details", std::vector<std::string>());
  const auto theirs = chinese.value("details", std::vector<std::string>());
  std::vector<Text> details;
  for (std::size_t i = 0; i < english.size(); ++i) {
    details.push_back({english[i], i < theirs.size() ? theirs[i] : english[i]});
  }
  return details;
}

Finding finding_of(const ordered_json& row) {
  const ordered_json chinese = row.value("chinese", ordered_json::object());
  return {.kind = row.at("kind").get<std::string>(),
          .ranks = ranks_of(row.value("ranks", ordered_json::array()), "/findings/ranks"),
          .waiting = ranks_of(row.value("waiting", ordered_json::array()), "/findings/waiting"),
          .waited_s = row.value("waited_s", 0.0),
          .text = text_of(row.at("text").get<std::string>(), chinese, "text"),
          .details = details_of(row, chinese),
          .next = text_of(row.value("next", std::string()), chinese, "next")};
}

// One operation of a group, over its ranks.
struct Operation {
  std::string collective = {};
  std::string label = {};  // " (layer 3)", as the rank that came first says; empty: it says none
  double start_us = 0;
  std::vector<int> in = {};     // ranks that did not end it
  std::vector<int> ended = {};  // ranks that did
};
using Key = std::pair<std::string, std::int64_t>;

std::vector<int> members_of(const ordered_json& trace, const std::string& group) {
  if (!trace.contains("groups")) {
    return {};
  }
  const ordered_json& names = trace["groups"].at("name");
  const auto found = std::find(names.begin(), names.end(), ordered_json(group));
  if (found == names.end()) {
    return {};
  }
  return ranks_of(trace["groups"].at("ranks").at(static_cast<std::size_t>(found - names.begin())),
                  "/groups/ranks");
}

// Returns true if the rank may have been in the operation and its record has been dropped: dropped
// events are those before its first one.
bool may_be_dropped(const ordered_json& trace, int rank, const Key& operation) {
  const auto at = static_cast<std::size_t>(rank);
  const ordered_json dropped = trace.value("dropped_events", ordered_json::array());
  if (at >= dropped.size() || dropped.at(at).get<double>() <= 0) {
    return false;
  }
  const ordered_json& ops = trace.at("ops");
  for (std::size_t row = 0; row < ops.at("rank").size(); ++row) {
    if (ops["rank"].at(row) == rank && ops.at("number").at(row) < operation.second &&
        (ops.contains("group") ? ops["group"].at(row) : ordered_json("world")) == operation.first) {
      return false;
    }
  }
  return true;
}

std::map<Key, Operation> operations_of(const ordered_json& trace) {
  const ordered_json& ops = trace.at("ops");
  std::map<Key, Operation> operations;
  for (std::size_t row = 0; row < ops.at("rank").size(); ++row) {
    const std::string group =
        ops.contains("group") ? ops["group"].at(row).get<std::string>() : "world";
    const double start = ops.at("start_us").at(row).get<double>();
    const auto [found, is_new] =
        operations.try_emplace({group, whole_at(trace, "ops", "number", row)});
    Operation& operation = found->second;
    if (is_new || start < operation.start_us) {
      operation.start_us = start;
      const ordered_json label = ops.contains("label") ? ops["label"].at(row) : ordered_json();
      operation.label = label.is_string() ? " (" + label.get<std::string>() + ")" : "";
    }
    operation.collective = ops.at("collective").at(row).get<std::string>();
    (ops.at("end_us").at(row).is_null() ? operation.in : operation.ended)
        .push_back(rank_at(trace, "ops", "rank", row));
  }
  return operations;
}

// The first operation that somebody was in when the recording ended, and who of its group was not.
std::optional<Finding> first_unended(const ordered_json& trace) {
  if (!trace.contains("ops")) {
    return std::nullopt;
  }
  const std::map<Key, Operation> operations = operations_of(trace);
  const auto is_earlier = [](const auto& a, const auto& b) {
    return std::pair(a.second.in.empty(), a.second.start_us) <
           std::pair(b.second.in.empty(), b.second.start_us);
  };
  const auto first = std::min_element(operations.begin(), operations.end(), is_earlier);
  if (first == operations.end() || first->second.in.empty()) {
    return std::nullopt;
  }
  const auto& [key, operation] = *first;
  std::vector<int> missing = members_of(trace, key.first);
  std::erase_if(missing, [&trace, &id = key, &op = operation](int rank) {
    return std::count(op.in.begin(), op.in.end(), rank) +
                   std::count(op.ended.begin(), op.ended.end(), rank) !=
               0 ||
           may_be_dropped(trace, rank, id);
  });
  Finding finding{.kind = "not ended", .ranks = missing, .waiting = operation.in};
  finding.text =
      say("{} #{} of {}{} did not end: {} {} in it{}", "{0} #{1}（{2}）{3} 没有结束：{4} 在其中{6}",
          operation.collective, key.second, key.first, operation.label, say_ranks(operation.in),
          operation.in.size() == 1 ? "was" : "were",
          missing.empty() ? Text() : say(", {} never came", "，{} 从未到来", say_ranks(missing)));
  finding.next = say("unisono view FILE shows what each rank did last",
                     "unisono view FILE 显示每个 rank 最后做了什么");
  return finding;
}

}  // namespace

bool is_about_the_recording(const Finding& finding) {
  return finding.kind == "dropped";
}

std::vector<Finding> explain_recording(const ordered_json& trace) {
  try {
    std::vector<Finding> findings;
    for (const ordered_json& row : trace.value("findings", ordered_json::array())) {
      findings.push_back(finding_of(row));
    }
    if (std::all_of(findings.begin(), findings.end(), is_about_the_recording)) {
      if (auto finding = first_unended(trace)) {
        findings.insert(findings.begin(), std::move(*finding));
      }
    }
    std::stable_partition(findings.begin(), findings.end(),
                          [](const Finding& each) { return !is_about_the_recording(each); });
    return findings;
  } catch (const nlohmann::json::exception&) {
    throw UsageError("the recording is not whole", "as in docs/formats/trace.md",
                     "unisono run --record FILE makes one");
  }
}

}  // namespace unisono::cli
