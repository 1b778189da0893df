// Lines of comma separated values.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/account.h"

namespace unisono::network_model {

// The fields without blanks around them, 1001 at most. One in double quotes may hold commas, and
// two double quotes for one; nullopt if a quote is never closed.
std::optional<std::vector<std::string>> csv_fields(std::string_view line);

// A whole field that is a finite number.
std::optional<double> csv_number(std::string_view text);

// Returns the problem of the heading line: a duplicate column, or a missing one. Empty: none.
std::string csv_heading_problem(const std::vector<std::string>& names,
                                std::span<const std::string_view> needed);
// The account of a table before its rows: the columns that are not `known` are named.
Account csv_account(const std::vector<std::string>& names, std::span<const std::string_view> known);

}  // namespace unisono::network_model
