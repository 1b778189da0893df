// Dispatch, for those who need it as a part of another call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// A mistake in using this routing with this exchange; none: an empty text.
Mistake find_mistake(const detail::ExchangeState& state, const detail::RoutingState* routing);
// That memory of `have` bytes should be `rows` rows; adds to `mistake` if it has none yet.
void expect(Mistake& mistake, const char* what, std::size_t have, std::size_t rows,
            std::size_t row_bytes);
// The same for the rows of a routing: as many as it has, or more.
void expect_rows(Mistake& mistake, const char* what, std::size_t have,
                 const detail::RoutingState& routing, std::size_t row_bytes);

// That a call is under way is a mistake in any other call.
Mistake find_started(const detail::ExchangeState& state);

// Tells the peers where the rows are; `in_halves`: without waiting for them, on one host. Throws
// what is wrong on any rank, or finish_opening() does.
std::unique_ptr<detail::StartedCall> start_call(detail::ExchangeState& state,
                                                const detail::RoutingState* routing,
                                                std::vector<Travel> travels, Opening opening,
                                                Mistake mistake, bool in_halves);
void finish_opening(detail::ExchangeState& state, detail::StartedCall& call);
// Throws, on all ranks and before anything is written, if one has changed its rows between the
// halves of the call.
void expect_unchanged(detail::ExchangeState& state, const detail::StartedCall& call);
// After it the caller may change the rows.
void end_call(detail::ExchangeState& state);

// `details`: what all ranks must agree on besides. `mistake`: what the caller has found.
std::unique_ptr<detail::StartedCall> start_dispatch(detail::ExchangeState& state,
                                                    const detail::RoutingState* routing,
                                                    std::span<const Payload> payloads,
                                                    std::uint32_t details, Mistake mistake,
                                                    bool in_halves);
void finish_dispatch(detail::ExchangeState& state, std::unique_ptr<detail::StartedCall> call);

// What start_dispatch() or start_combine() left. Throws if it has not been called.
std::unique_ptr<detail::StartedCall> take_started(detail::ExchangeState& state, CallKind kind);

}  // namespace unisono::experts
