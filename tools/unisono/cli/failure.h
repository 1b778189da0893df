// Exit codes, and the form in which the program reports every failure:
//
//   error[usage]: unknown option --tiemout
//     did you mean --timeout?
//   next   unisono help run
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "unisono/error.hpp"

namespace unisono::cli {

class Console;

enum Exit : int {
  kDone = 0,
  kAnswerIsNo = 1,   // wrong data, schedule invalid, mismatch found
  kUsage = 2,        // usage or configuration
  kCouldNotRun = 3,  // connect, peer lost, resource
  kTimedOut = 4,
  kTooSlow = 5,      // slower than required
  kSignalBase = 128  // + the signal's number
};

// An error in the command line, or in a file that the user gave.
class UsageError : public std::runtime_error {
 public:
  // `detail` is printed below the message; `next` is a command to try.
  explicit UsageError(const std::string& message, std::string detail = {}, std::string next = {})
      : std::runtime_error(message), detail_(std::move(detail)), next_(std::move(next)) {}
  const std::string& detail() const { return detail_; }
  const std::string& next() const { return next_; }

 private:
  std::string detail_;
  std::string next_;
};

// "did you mean ring?", or empty if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string_view prefix = {});

int exit_code(ErrorCode code);

void print_error(const Console& console, std::string_view code, std::string_view message,
                 std::string_view detail, std::string_view next);

}  // namespace unisono::cli
