// Lines of comma separated values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::network_model {

// The fields without blanks around them. One in double quotes may hold commas, and two double
// quotes for one; nullopt if a quote is never closed.
std::optional<std::vector<std::string>> csv_fields(std::string_view line);

// A whole field that is a finite number.
std::optional<double> csv_number(std::string_view text);

}  // namespace unisono::network_model
