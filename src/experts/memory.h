// The number of rows that an exchange of a given number of tokens can have, and memory for them in
// advance.
#pragma once

#include <cstddef>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// Returns the most rows, with padding, that a routing of `tokens` tokens per rank can bring to this
// rank.
std::size_t most_rows(const detail::ExpertExchangeState& state, std::size_t tokens);

// Allocates memory for the rows of an even routing of `tokens` tokens per rank, if the options give
// the row length. Then it is collective, and throws on all ranks if one has no memory.
void reserve(detail::ExpertExchangeState& state, std::size_t tokens, CallKind call);

}  // namespace unisono::experts
