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

void count_from(double start, ordered_json& group) {
  for (const char* column : {"start_us", "end_us"}) {
    for (ordered_json& value : group[column]) {
      if (!value.is_null()) {
        value = us_of_ns(std::max(0.0, value.get<double>() - start) * 1000);
      }
    }
  }
}

ordered_json extract(const ordered_json& trace, const std::string& label) {
  const ordered_json& ops = trace.at("ops");
  const auto wanted = rows_where(ops, "number", [&](const ordered_json& number, std::size_t row) {
    return fmt::format("{} #{}", ops.at("group")[row].get<std::string>(),
                       number.get<std::int64_t>()) == label;
  });
  if (wanted.empty()) {
    refuse(label);
  }
  ordered_json result = {
      {"format", trace.at("format")}, {"name", ""}, {"ranks", trace.at("ranks")}};
  if (trace.contains("clock_uncertainty_us")) {
    result["clock_uncertainty_us"] = trace["clock_uncertainty_us"];
  }
  result["ops"] = rows_of(ops, wanted);
  result["name"] = fmt::format("{}/{}", result["ops"]["collective"][0].get<std::string>(),
                               result["ops"]["algorithm"][0].get<std::string>());
  const ordered_json& messages = trace.at("messages");
  result["messages"] = rows_of(
      messages,
      rows_where(messages, "op", [&](const ordered_json& op, std::size_t) { return op == label; }));
  double start = std::numeric_limits<double>::infinity();
  for (const ordered_json& value : result["ops"]["start_us"]) {
    start = std::min(start, value.get<double>());
  }
  count_from(start, result["ops"]);
  count_from(start, result["messages"]);
  return result;
}

}  // namespace

ordered_json one_operation(const ordered_json& trace, const std::string& label) {
  try {
    return extract(trace, label);
  } catch (const nlohmann::json::exception&) {
    throw UsageError("the recording is not whole", "as in docs/formats/trace.md",
                     "unisono run --record FILE makes one");
  }
}

std::string page_address(const ordered_json& operation) {
  const std::string name = operation.at("name");
  const std::size_t slash = name.find('/');
  return fmt::format("#run?collective={}&algorithm={}&ranks={}&bytes={}", name.substr(0, slash),
                     name.substr(slash + 1, name.find(':') - slash - 1),
                     operation.at("ranks").get<int>(),
                     operation.at("ops").at("bytes")[0].get<std::int64_t>());
}

}  // namespace unisono::cli
