// How many rows an exchange of a known number of tokens can have, and memory for them before they
// come.
#pragma once

#include <cstddef>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// The most rows, with padding, that a routing of `tokens` tokens a rank can bring to this rank.
std::size_t most_rows(const detail::ExchangeState& state, std::size_t tokens);

// Memory for the rows of an even routing of `tokens` tokens a rank, where the options say how long
// they are. Collective then; throws on all ranks if one has no memory.
void reserve(detail::ExchangeState& state, std::size_t tokens, CallKind call);

}  // namespace unisono::experts
