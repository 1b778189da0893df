// Decides whether the moves of a call between hosts may be encoded (Call::max_error).
#pragma once

#include <span>
#include <string>

#include "cost/encoded.h"
#include "unisono/call.hpp"

namespace unisono::comm {

// The reason why a call cannot run as requested, and the advice.
struct Refused {
  std::string what;  // empty: not refused
  std::string hint;
};

// Returns a refusal if the call does not support this max_error (not 0), which may be its own value
// or the communicator's.
Refused refusal_of_max_error(const Call& call, double max_error);

// Returns the name under which the algorithm's program is cached; it depends on the hosts.
std::string encoded_key(const cost::EncodedAlgorithm& algorithm, int root,
                        std::span<const int> hosts);

}  // namespace unisono::comm
