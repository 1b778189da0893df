// Errors of waiting, as the runner says them.
#pragma once

#include <string>

#include "unisono/error.hpp"

namespace unisono::parallel::detail {

// The same error, with what this rank of the pipeline waited for.
[[noreturn]] inline void rethrow_waiting(const Error& error, int rank, const std::string& what) {
  std::string reason = error.what();
  const std::string code = std::string(to_string(error.code())) + ": ";
  reason = reason.starts_with(code) ? reason.substr(code.size()) : reason;
  throw Error(error.code(),
              "pipeline: rank " + std::to_string(rank) + " waited for " + what + ": " + reason,
              error.context());
}

}  // namespace unisono::parallel::detail
