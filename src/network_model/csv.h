// Lines of comma separated values.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/account.h"

namespace unisono::network_model {

// Returns the fields without surrounding blanks, at most 1001. A field in double quotes may contain
// commas, and two double quotes stand for one. Returns nullopt if a quote is never closed.
std::optional<std::vector<std::string>> csv_fields(std::string_view line);

// Parses a whole field as a finite number.
std::optional<double> csv_number(std::string_view text);

// Returns the problem of the heading line: a duplicate or missing column; empty if there is none.
std::string csv_heading_problem(const std::vector<std::string>& names,
                                std::span<const std::string_view> needed);
// Starts the account of a table: lists the columns that are not `known`.
Account csv_account(const std::vector<std::string>& names, std::span<const std::string_view> known);

}  // namespace unisono::network_model
