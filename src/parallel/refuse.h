// Rejects a call of this library, with advice.
#pragma once

#include <string>

#include "unisono/error.hpp"

namespace unisono::parallel {

// Throws usage: "<call>: <what>\n<next>".
[[noreturn]] inline void refuse(const std::string& call, const std::string& what,
                                const std::string& next) {
  throw Error(ErrorCode::usage, call + ": " + what + "\n" + next);
}

}  // namespace unisono::parallel
