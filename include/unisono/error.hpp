// What ends an operation: one exception type with a code and the place where it happened.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "unisono/export.hpp"

namespace unisono {

enum class ErrorCode : std::uint8_t {
  usage,       // the caller passed something that cannot be done
  config,      // the environment or options contradict each other
  connection,  // ranks could not find each other
  peer_lost,   // a rank died or left
  timeout,     // a rank did not arrive in time
  mismatch,    // ranks disagree on what they are doing
  aborted,     // this or another rank called abort()
  corrupt,     // data that cannot be: a damaged file or message
  resource,    // the system gave no memory, descriptor or address
  internal,    // our own mistake
  evicted      // the other ranks went on without this one, or may have (see shrink())
};
inline constexpr ErrorCode kLastErrorCode = ErrorCode::evicted;

UNISONO_EXPORT std::string_view to_string(ErrorCode code);

// Where it happened. -1 or empty where a field does not apply. Ranks are those of the world, of
// split groups as well; steps count from 1, as `unisono show` does.
struct ErrorContext {
  int rank = -1;
  int peer = -1;
  std::string collective = {};
  std::int64_t op_seq = -1;
  int step = -1;
};

// What it says has two parts: what failed, where and since when, on one line; and a hint, what to
// try next, on the lines behind it. what() is "<code>: <what failed>\n<hint>".
class UNISONO_EXPORT Error : public std::runtime_error {
 public:
  // `message`: "<what failed>\n<hint>", of which the hint may be missing.
  Error(ErrorCode code, const std::string& message, ErrorContext context = {});
  ErrorCode code() const noexcept { return code_; }
  // The whole message, without the code; its first line; and the rest. Good as long as the error.
  std::string_view message() const noexcept;
  std::string_view summary() const noexcept;
  std::string_view hint() const noexcept;  // empty: there is none
  const ErrorContext& context() const noexcept { return context_; }

 private:
  ErrorCode code_;
  ErrorContext context_;
};

}  // namespace unisono
