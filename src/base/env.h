// The only reader of the environment. Every UNISONO_* variable is a row of the table here.
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

// The value of any variable (also RANK, OMPI_...), empty optional if unset.
std::optional<std::string> read_env(std::string_view name);

// The value of a variable that is 0 or 1; unset and empty are 0. Throws Error, config.
bool read_flag(std::string_view name);

// One warning a line for each UNISONO_* in the environment that is not in the table, with the
// nearest name.
std::vector<std::string> unknown_env_warnings();

}  // namespace unisono
