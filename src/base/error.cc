#include "unisono/error.hpp"

#include <algorithm>
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

std::string_view Error::message() const noexcept {
  return std::string_view(what()).substr(to_string(code_).size() + 2);
}

std::string_view Error::summary() const noexcept {
  return message().substr(0, message().find('\n'));
}

std::string_view Error::hint() const noexcept {
  const std::string_view all = message();
  return all.substr(std::min(summary().size() + 1, all.size()));
}

}  // namespace unisono
