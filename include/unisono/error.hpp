// Error: the exception that ends an operation, with a code and the place where it happened.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "unisono/export.hpp"

namespace unisono {
// The reason why an operation ended.
enum class ErrorCode : std::uint8_t {
  usage,       // the caller passed something invalid
  config,      // the environment or the options are wrong or contradict each other
  connection,  // ranks could not find each other
  peer_lost,   // a rank died or left
  timeout,     // a rank did not arrive in time
  mismatch,    // ranks make different calls
  aborted,     // a rank called abort() or shrink(), or was interrupted
  corrupt,     // damaged file or message
  resource,    // the system refused memory, a descriptor or an address
  internal,    // a defect in unisono
  evicted      // the other ranks continued without this rank, or may have (see shrink())
};
inline constexpr ErrorCode kLastErrorCode = ErrorCode::evicted;  // the greatest value

UNISONO_EXPORT std::string_view to_string(ErrorCode code);  // "usage", "peer_lost", ...

// The place of the error. A field that does not apply is -1 or empty. `rank` and `peer` are world
// ranks, also for errors in split groups. Exception: if a class that uses a Communicator, such as
// DeviceGroup, detects an error itself, `rank` and `peer` are ranks of this communicator. Steps are
// numbered from 1, as in `unisono show`.
struct ErrorContext {
  int rank = -1;
  int peer = -1;
  std::string collective = {};
  std::int64_t op_seq = -1;
  int step = -1;
};

// An error has two parts: a summary (what failed, where, since when) on one line, and a hint (what
// to try next) on the following lines. what() is "<code>: <summary>\n<hint>".
class UNISONO_EXPORT Error : public std::runtime_error {
 public:
  // `message`: "<summary>\n<hint>"; the hint may be missing.
  Error(ErrorCode code, const std::string& message, ErrorContext context = {});
  ErrorCode code() const noexcept { return code_; }
  // message() returns the message without the code. summary() returns the message's first line, and
  // hint() the other lines. The texts are valid while the Error lives.
  std::string_view message() const noexcept;
  std::string_view summary() const noexcept;
  std::string_view hint() const noexcept;  // may be empty
  const ErrorContext& context() const noexcept { return context_; }

 private:
  ErrorCode code_;
  ErrorContext context_;
};

}  // namespace unisono
