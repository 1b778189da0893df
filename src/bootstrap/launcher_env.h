// Reads the environment that launchers set.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "unisono/options.hpp"

namespace unisono::comm {

using EnvLookup = std::function<std::optional<std::string>(std::string_view)>;

// resolve() with any environment. A variable that is set but empty counts as unset.
ConnectOptions resolve(const ConnectOptions& options, const EnvLookup& lookup);

// Returns how many threads of a rank move the data of a long call. Throws config.
int threads_of(const EnvLookup& lookup);

// Returns UNISONO_MAX_ERROR; 0 if it is unset. Throws config.
double max_error_of(const EnvLookup& lookup);

// Returns UNISONO_CHECKSUM; nothing if it is unset. Throws config.
std::optional<bool> checksum_of(const EnvLookup& lookup);

// Returns UNISONO_SILENCE_MS. Throws config.
int silence_of(const EnvLookup& lookup);

// Throws config if a UNISONO_* variable has an invalid value, even if an option overrides the
// variable.
void check_texts_and_numbers(const EnvLookup& lookup);

}  // namespace unisono::comm
