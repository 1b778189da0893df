// Dispatch, for those who need it as a part of another call.
#pragma once

#include <cstdint>
#include <span>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// A mistake in using this routing with this exchange; none: an empty text.
Mistake find_mistake(const detail::ExchangeState& state, const detail::RoutingState* routing);
// That memory of `have` bytes should be `rows` rows; adds to `mistake` if it has none yet.
void expect(Mistake& mistake, const char* what, std::size_t have, std::size_t rows,
            std::size_t row_bytes);

// `details`: what all ranks must agree on besides. `mistake`: what the caller has found.
void dispatch(detail::ExchangeState& state, const detail::RoutingState* routing,
              std::span<const Payload> payloads, std::uint32_t details, Mistake mistake);

}  // namespace unisono::experts
