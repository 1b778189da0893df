// Only this module reads the environment. Its table has a row for every UNISONO_* variable.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unisono {

struct EnvVariable {
  std::string_view name;           // "UNISONO_TIMEOUT_MS"
  std::string_view default_value;  // as text
  std::string_view help;           // one line
};

std::span<const EnvVariable> env_variables();

// Returns the value of any variable, including RANK or OMPI_..., or an empty optional if it is
// unset.
std::optional<std::string> read_env(std::string_view name);

// Returns the value of a variable that is 0 or 1; unset or empty means 0. Throws Error(config).
bool read_flag(std::string_view name);

// Returns a one-line warning for each UNISONO_* variable in the environment that is not in the
// table, with the most similar name.
std::vector<std::string> unknown_env_warnings();

}  // namespace unisono
