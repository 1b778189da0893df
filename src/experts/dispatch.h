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

// Tells the peers where the rows are. Throws the mistake of any rank.
std::unique_ptr<detail::StartedCall> start_call(detail::ExpertExchangeState& state,
                                                const detail::RoutingState* routing,
                                                std::vector<RowTransfer> transfers,
                                                CallHeader header, Mistake mistake);
// Afterwards the caller may change the rows.
void end_call(detail::ExpertExchangeState& state);

// The names of a payload's memory in error texts.
struct PartNames {
  const char* in = "in";
  const char* out = "out";
};
struct DispatchForm {
  CallKind kind = CallKind::dispatch;  // the call that it is a part of
  PartNames names = {};
};
// `mistake`: found by the caller.
void dispatch(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
              std::span<const Payload> payloads, const DispatchForm& form, Mistake mistake);

}  // namespace unisono::experts
