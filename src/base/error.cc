#include "unisono/error.hpp"

#include <array>
#include <utility>

namespace unisono {

std::string_view to_string(ErrorCode code) {
  constexpr std::array<std::string_view, 11> kNames = {
      "usage",   "config",  "connection", "peer_lost", "timeout", "mismatch",
      "aborted", "corrupt", "resource",   "internal",  "evicted"};
  return kNames.at(static_cast<std::size_t>(code));
}

Error::Error(ErrorCode code, const std::string& message, ErrorContext context)
    : std::runtime_error(std::string(to_string(code)) + ": " + message),
      code_(code),
      context_(std::move(context)) {}

}  // namespace unisono
