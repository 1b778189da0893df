// Calls whose moves between hosts may be encoded (Call::accuracy): whether they may.
#pragma once

#include <span>
#include <string>

#include "cost/encoded.h"
#include "unisono/call.hpp"

namespace unisono::comm {

// Why a call is not done as it is asked for, and what to do.
struct Refused {
  std::string what;  // empty: nothing is refused
  std::string hint;
};

// Whether a call can keep to an accuracy that is not 0: its own, or the communicator's.
Refused refusal_of_accuracy(const Call& call, double accuracy);

// The name of a program that runs it, which is another one on other hosts.
std::string encoded_key(const cost::EncodedAlgorithm& algorithm, int root,
                        std::span<const int> hosts);

}  // namespace unisono::comm
