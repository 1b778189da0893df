#include "record/one_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "cli/failure.h"
#include "record/numbers.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& label) {
  throw UsageError(fmt::format("the recording has no operation '{}'", label),
                   "its group and its number, such as 'world #17'", "unisono view FILE lists them");
}

// The rows of a group of columns that are wanted.
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

// Of the format, these columns may be absent.
std::string text_in(const ordered_json& ops, const char* column, std::size_t row,
                    const char* absent) {
  return ops.contains(column) ? ops.at(column).at(row).get<std::string>() : absent;
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

ordered_json extract(const ordered_json& trace, const std::string& label) {
  const ordered_json& ops = trace.at("ops");
  const auto wanted = rows_where(ops, "number", [&](const ordered_json& number, std::size_t row) {
    return fmt::format("{} #{}", text_in(ops, "group", row, "world"), number.get<std::int64_t>()) ==
           label;
  });
  if (wanted.empty()) {
    refuse(label);
  }
  ordered_json result = {
      {"format", trace.at("format")}, {"name", ""}, {"ranks", trace.at("ranks")}};
  for (const char* key : {"clock_uncertainty_us", "findings", "ended", "until_us"}) {
    if (trace.contains(key)) {
      result[key] = trace[key];
    }
  }
  result["ops"] = rows_of(ops, wanted);
  for (const char* column : {"rank", "collective", "bytes", "start_us", "end_us"}) {
    result["ops"].at(column);
  }
  result["name"] = fmt::format("{}/{}", result["ops"].at("collective").at(0).get<std::string>(),
                               text_in(result["ops"], "algorithm", 0, ""));
  result["messages"] = messages_of(trace, label);
  double start = std::numeric_limits<double>::infinity();
  for (const ordered_json& value : result["ops"]["start_us"]) {
    start = std::min(start, value.get<double>());
  }
  count_from(start, result["ops"]["start_us"]);
  count_from(start, result["ops"]["end_us"]);
  count_from(start, result["messages"]["start_us"]);
  count_from(start, result["messages"]["end_us"]);
  if (result.contains("until_us")) {
    count_from(start, result["until_us"]);
  }
  return result;
}

}  // namespace

ordered_json one_operation(const ordered_json& trace, const std::string& label) {
  const bool is_number = label.find_first_not_of("0123456789") == std::string::npos;
  try {
    return extract(trace, is_number ? "world #" + label : label);
  } catch (const nlohmann::json::exception&) {
    throw UsageError("the recording is not whole", "as in docs/formats/trace.md",
                     "unisono run --record FILE makes one");
  }
}

}  // namespace unisono::cli
