// The property of a schedule that was converted from another executor's program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::fuzz {

// A proved program becomes a valid schedule, or is refused with a message. Returns an empty text,
// or the failure.
inline std::string as_schedule(const std::function<Schedule()>& to_schedule) {
  try {
    const std::vector<Finding> findings = verify(to_schedule());
    return findings.empty() ? ""
                            : "proved, but its schedule is wrong: " + to_text(findings.front());
  } catch (const Error& error) {
    return error.code() == ErrorCode::usage ? "" : std::string("refused as ") + error.what();
  }
}

}  // namespace unisono::fuzz
