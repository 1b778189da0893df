#include "network_model/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/words.h"

namespace unisono::network_model {
namespace {

constexpr std::size_t kMostFields = 1000;

}  // namespace

std::optional<std::vector<std::string>> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line.substr(i, 2) == "\"\"") {
      fields.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      if (fields.size() > kMostFields) {
        break;  // no line has more columns
      }
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  for (std::string& field : fields) {
    field = trimmed(field);
  }
  return quoted ? std::nullopt : std::optional(std::move(fields));
}

std::optional<double> csv_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string csv_heading_problem(const std::vector<std::string>& names,
                                std::span<const std::string_view> needed) {
  if (names.size() > kMostFields) {
    return "more than " + std::to_string(kMostFields) + " columns";
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && std::count(names.begin(), names.end(), names[i]) > 1) {
      return "there are two columns " + in_quotes(names[i]);
    }
  }
  for (const std::string_view name : needed) {
    if (std::ranges::find(names, name) == names.end()) {
      return "there is no column '" + std::string(name) + "': the first line must name it";
    }
  }
  return {};
}

Account csv_account(const std::vector<std::string>& names,
                    std::span<const std::string_view> known) {
  constexpr std::size_t kMostNamed = 8;
  Account account{.source = "table", .unit = "row"};
  std::string others;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (!name.empty() && std::ranges::find(known, name) == known.end() && ++count <= kMostNamed) {
      others += (others.empty() ? "" : ", ") + in_quotes(name);
    }
  }
  if (count > 0) {
    account.assume(std::string(count == 1 ? "the column " : "the columns ") + others +
                   (count > kMostNamed ? " and others" : "") +
                   (count == 1 ? " is for people" : " are for people"));
  }
  return account;
}

}  // namespace unisono::network_model
