// Bounds the rows of an exchange for a given number of tokens, and reserves memory for them.
#pragma once

#include <cstddef>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// Returns the greatest number of rows, with padding, that this rank can get from a routing of
// `tokens` tokens per rank.
std::size_t most_rows(const detail::ExpertExchangeState& state, std::size_t tokens);

// Allocates memory for the rows of an even routing of `tokens` tokens per rank. Does nothing if the
// options do not give the row length; otherwise it is collective, and throws on all ranks if a rank
// has no memory.
void reserve(detail::ExpertExchangeState& state, std::size_t tokens, CallKind call);

}  // namespace unisono::experts
