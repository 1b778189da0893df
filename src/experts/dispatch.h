// Dispatch as a part of other calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// Returns the mistake in using this routing with this exchange; an empty text if there is none.
Mistake find_mistake(const detail::ExpertExchangeState& state, const detail::RoutingState* routing);
// Returns 2^64 - 1 on overflow.
std::size_t bytes_of(std::size_t rows, std::size_t row_bytes);
// Checks that `written` does not overlap `used`; adds to `mistake` if it has none yet.
void expect_apart(Mistake& mistake, const char* what, std::span<const std::byte> written,
                  const char* other, std::span<const std::byte> used);
// Checks that memory of `have` bytes has `rows` rows; adds to `mistake` if it has none yet.
void expect(Mistake& mistake, const char* what, std::size_t have, std::size_t rows,
            std::size_t row_bytes);
// As above for the rows of a routing: as many as it has, or more.
void expect_rows(Mistake& mistake, const char* what, std::size_t have,
                 const detail::RoutingState& routing, std::size_t row_bytes);

// Returns the mistake of making another call while one has been started.
Mistake find_started(const detail::ExpertExchangeState& state);
// For the first half of another call: throws before anything is sent; the started call is
// unaffected.
void expect_none_started(const detail::ExpertExchangeState& state);

// Tells the peers where the rows are; for a call in halves on one host, without waiting for them.
// Throws the mistake of any rank, or finish_opening() does.
std::unique_ptr<detail::StartedCall> start_call(detail::ExpertExchangeState& state,
                                                const detail::RoutingState* routing,
                                                std::vector<RowTransfer> transfers,
                                                CallHeader header, Mistake mistake, CallForm form);
void finish_headers(detail::ExpertExchangeState& state, detail::StartedCall& call);
// Returns a fingerprint of all memory that the caller must not change between the halves. Coded
// rows belong to the exchange.
std::uint64_t fingerprint(const detail::StartedCall& call);
// Throws on all ranks, before anything is written, if a rank has changed that memory between the
// halves.
void expect_unchanged(detail::ExpertExchangeState& state, const detail::StartedCall& call);
// Afterwards the caller may change the rows.
void end_call(detail::ExpertExchangeState& state);

// The names of a payload's memory in error texts.
struct PartNames {
  const char* in = "in";
  const char* out = "out";
};
struct DispatchForm {
  CallKind kind = CallKind::dispatch;  // the call that it is a part of
  CallForm call = {};
  PartNames names = {};
};
// `mistake`: found by the caller.
std::unique_ptr<detail::StartedCall> start_dispatch(detail::ExpertExchangeState& state,
                                                    const detail::RoutingState* routing,
                                                    std::span<const Payload> payloads,
                                                    const DispatchForm& form, Mistake mistake);
void finish_dispatch(detail::ExpertExchangeState& state, std::unique_ptr<detail::StartedCall> call);

// Returns the call that start_dispatch() or start_combine() started. Throws if there is none.
std::unique_ptr<detail::StartedCall> take_started(detail::ExpertExchangeState& state,
                                                  CallKind kind);

}  // namespace unisono::experts
