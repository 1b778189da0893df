#include "record/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/failure.h"
#include "record/numbers.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFindings = "findings";
constexpr std::int64_t kMostNumber = std::numeric_limits<std::int64_t>::max();

// Returns the requested rows of a group of columns.
ordered_json rows_of(const ordered_json& group, const std::vector<std::size_t>& rows) {
  ordered_json result = ordered_json::object();
  for (const auto& [name, column] : group.items()) {
    result[name] = ordered_json::array();
    for (const std::size_t row : rows) {
      result[name].push_back(column.at(row));
    }
  }
  return result;
}

std::vector<std::size_t> rows_where(
    const ordered_json& group, const char* column,
    const std::function<bool(const ordered_json&, std::size_t)>& is) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < group.at(column).size(); ++row) {
    if (is(group.at(column)[row], row)) {
      rows.push_back(row);
    }
  }
  return rows;
}

void count_from(double start, ordered_json& times) {
  for (ordered_json& value : times) {
    if (!value.is_null()) {
      value = us_of_ns(std::max(0.0, value.get<double>() - start) * 1000);
    }
  }
}

// These columns of the format may be absent.
std::string text_in(const ordered_json& ops, const char* column, std::size_t row,
                    const char* absent) {
  return ops.contains(column) ? ops.at(column).at(row).get<std::string>() : absent;
}

// "world has #12 to #19, ranks 0,2 has #3": the first and the last operation of each group.
std::string what_is_there(const ordered_json& ops) {
  constexpr std::size_t kMostGroups = 8;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> groups;
  for (std::size_t row = 0; row < ops.at("number").size(); ++row) {
    const std::int64_t number = whole_of(ops["number"].at(row), "/ops/number", 0, kMostNumber);
    const auto [found, is_new] =
        groups.try_emplace(text_in(ops, "group", row, "world"), number, number);
    found->second.first = std::min(found->second.first, number);
    found->second.second = std::max(found->second.second, number);
  }
  std::string text;
  std::size_t told = 0;
  for (const auto& [group, numbers] : groups) {
    if (told++ == kMostGroups) {
      return text + ", ...";
    }
    const auto& [first, last] = numbers;
    text += text.empty() ? "" : ", ";
    text += first == last ? fmt::format("{} has #{}", group, first)
                          : fmt::format("{} has #{} to #{}", group, first, last);
  }
  return text.empty() ? "it has none at all" : text;
}

[[noreturn]] void refuse(const ordered_json& trace, const std::string& label) {
  std::string there = what_is_there(trace.at("ops"));
  const ordered_json dropped = trace.value("dropped_events", ordered_json::array());
  if (std::any_of(dropped.begin(), dropped.end(), [](const ordered_json& n) { return n != 0; })) {
    there += "; what came before was dropped (--record-events keeps more)";
  }
  throw UsageError(fmt::format("the recording has no operation '{}'", label), there,
                   "unisono view FILE lists them");
}

ordered_json messages_of(const ordered_json& trace, const std::string& label) {
  if (!trace.contains("messages") || !trace["messages"].contains("op")) {
    return {{"from", ordered_json::array()},     {"to", ordered_json::array()},
            {"step", ordered_json::array()},     {"bytes", ordered_json::array()},
            {"start_us", ordered_json::array()}, {"end_us", ordered_json::array()}};
  }
  const ordered_json& messages = trace["messages"];
  return rows_of(messages, rows_where(messages, "op", [&](const ordered_json& op, std::size_t) {
                   return op == label;
                 }));
}

// Returns the recording's findings about this operation, and those that name no operation.
ordered_json findings_of(const ordered_json& trace, const std::string& label) {
  ordered_json result = ordered_json::array();
  for (const ordered_json& finding : trace.at("findings")) {
    const bool says = finding.contains("ops");
    const ordered_json& ops = says ? finding["ops"] : finding;
    if (!says || (ops.empty() && finding.contains("abort")) ||
        std::find(ops.begin(), ops.end(), ordered_json(label)) != ops.end()) {
      result.push_back(finding);
    }
  }
  return result;
}

// Returns the ranks' events in the operation.
ordered_json events_of(const ordered_json& trace, const std::vector<std::size_t>& rows) {
  std::map<std::int64_t, std::size_t> places;
  for (const std::size_t row : rows) {
    places.emplace(static_cast<std::int64_t>(row), places.size());
  }
  const auto place_of = [](const ordered_json& op) {
    return whole_of(op, "/events/op", 0, kMostNumber);
  };
  const ordered_json& events = trace.at("events");
  ordered_json result =
      rows_of(events, rows_where(events, "op", [&](const ordered_json& op, std::size_t) {
                return places.contains(place_of(op));
              }));
  for (ordered_json& op : result["op"]) {
    op = places.at(place_of(op));
  }
  return result;
}

ordered_json extract(const ordered_json& trace, const std::string& label) {
  const ordered_json& ops = trace.at("ops");
  const auto wanted = rows_where(ops, "number", [&](const ordered_json& number, std::size_t row) {
    return fmt::format("{} #{}", text_in(ops, "group", row, "world"),
                       whole_of(number, "/ops/number", 0, kMostNumber)) == label;
  });
  if (wanted.empty()) {
    refuse(trace, label);
  }
  ordered_json result = {
      {"format", trace.at("format")}, {"name", ""}, {"ranks", trace.at("ranks")}};
  for (const char* key : {"clock_uncertainty_us", "dropped_events", "findings", "aborts", "ended",
                          "ended_chinese", "until_us"}) {
    if (trace.contains(key)) {
      result[key] = key == kFindings ? findings_of(trace, label) : trace[key];
    }
  }
  if (trace.contains("groups")) {
    const std::string group = text_in(ops, "group", wanted.front(), "world");
    const auto is_its = [&group](const ordered_json& name, std::size_t) { return name == group; };
    result["groups"] = rows_of(trace["groups"], rows_where(trace["groups"], "name", is_its));
  }
  result["ops"] = rows_of(ops, wanted);
  for (const char* column : {"rank", "collective", "bytes", "start_us", "end_us"}) {
    result["ops"].at(column);
  }
  result["name"] = fmt::format("{}/{}", result["ops"].at("collective").at(0).get<std::string>(),
                               text_in(result["ops"], "algorithm", 0, ""));
  result["messages"] = messages_of(trace, label);
  ordered_json none;
  double start = std::numeric_limits<double>::infinity();
  for (const ordered_json& value : result["ops"]["start_us"]) {
    start = std::min(start, value.get<double>());
  }
  count_from(start, result["ops"]["start_us"]);
  count_from(start, result["ops"]["end_us"]);
  count_from(start, result["messages"]["start_us"]);
  count_from(start, result["messages"]["end_us"]);
  if (trace.contains("events")) {
    result["events"] = events_of(trace, wanted);
    count_from(start, result["events"].at("start_us"));
    count_from(start, result["events"].at("end_us"));
  }
  if (result.contains("until_us")) {
    count_from(start, result["until_us"]);
  }
  for (ordered_json& abort : result.contains("aborts") ? result["aborts"] : none) {
    if (abort.at("at_us").is_number()) {
      abort["at_us"] = us_of_ns((abort["at_us"].get<double>() - start) * 1000);
    }
  }
  return result;
}

}  // namespace

ordered_json one_operation(const ordered_json& trace, const std::string& label) {
  if (label.starts_with("-")) {
    throw UsageError(fmt::format("'{}' is not an operation", label), "they count from 1",
                     "unisono view FILE lists them");
  }
  const bool is_number = label.find_first_not_of("0123456789") == std::string::npos;
  try {
    return extract(trace, is_number ? "world #" + label : label);
  } catch (const nlohmann::json::exception&) {
    throw UsageError("the recording is not whole", "as in docs/formats/trace.md",
                     "unisono run --record FILE makes one");
  }
}

}  // namespace unisono::cli
