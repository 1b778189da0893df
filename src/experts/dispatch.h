// Dispatch as a building block of other calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// Returns the mistake in using this routing with this exchange; its text is empty if there is none.
Mistake find_mistake(const detail::ExpertExchangeState& state, const detail::RoutingState* routing);
// Returns the product, or 2^64 - 1 on overflow.
std::size_t bytes_of(std::size_t rows, std::size_t row_bytes);
// Checks that `written` does not overlap `used`. Sets `mistake` unless it is already set.
void expect_apart(Mistake& mistake, const char* what, std::span<const std::byte> written,
                  const char* other, std::span<const std::byte> used);
// Checks that `have` bytes are exactly `rows` rows. Sets `mistake` unless it is already set.
void expect(Mistake& mistake, const char* what, std::size_t have, std::size_t rows,
            std::size_t row_bytes);
// Checks that `have` bytes are whole rows, at least as many as the routing has.
void expect_rows(Mistake& mistake, const char* what, std::size_t have,
                 const detail::RoutingState& routing, std::size_t row_bytes);

// Announces the rows' memory to the peers. Throws the mistake of any rank.
std::unique_ptr<detail::StartedCall> start_call(detail::ExpertExchangeState& state,
                                                const detail::RoutingState* routing,
                                                std::vector<RowTransfer> transfers,
                                                CallHeader header, Mistake mistake);
// Ends a call. Afterwards the caller may change the rows.
void end_call(detail::ExpertExchangeState& state);

// Names of a payload's memory in error texts.
struct PartNames {
  const char* in = "in";
  const char* out = "out";
};
struct DispatchForm {
  CallKind kind = CallKind::dispatch;  // the enclosing call
  PartNames names = {};
};
// `mistake`: a mistake that the caller has found, if any.
void dispatch(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
              std::span<const Payload> payloads, const DispatchForm& form, Mistake mistake);

}  // namespace unisono::experts
