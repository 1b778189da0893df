// Adds the runner's context to errors raised while waiting.
#pragma once

#include <string>

#include "unisono/error.hpp"

namespace unisono::parallel::detail {

// Returns the result of `body`. If it throws, adds a description of what this rank of the pipeline
// waited for. Any call on a group may find that the world has ended, whether it begins a message or
// waits for one.
template <typename What, typename Body>
auto saying_what_it_waits_for(int rank, const What& what, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::string reason = error.what();
    const std::string code = std::string(to_string(error.code())) + ": ";
    reason = reason.starts_with(code) ? reason.substr(code.size()) : reason;
    throw Error(error.code(),
                "pipeline: rank " + std::to_string(rank) + " waited for " + what() + ": " + reason,
                error.context());
  }
}

}  // namespace unisono::parallel::detail
