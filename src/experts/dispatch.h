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
// 2^64 - 1 where that is more.
std::size_t bytes_of(std::size_t rows, std::size_t row_bytes);
// That `written` must not be a part of `used`; adds to `mistake` if it has none yet.
void expect_apart(Mistake& mistake, const char* what, std::span<const std::byte> written,
                  const char* other, std::span<const std::byte> used);
// That memory of `have` bytes should be `rows` rows; adds to `mistake` if it has none yet.
void expect(Mistake& mistake, const char* what, std::size_t have, std::size_t rows,
            std::size_t row_bytes);
// The same for the rows of a routing: as many as it has, or more.
void expect_rows(Mistake& mistake, const char* what, std::size_t have,
                 const detail::RoutingState& routing, std::size_t row_bytes);

// That a call is under way is a mistake in any other call.
Mistake find_started(const detail::ExchangeState& state);
// For the first half of another one: throws before anything is sent, and what is under way stays.
void expect_none_started(const detail::ExchangeState& state);

// Tells the peers where the rows are; in halves without waiting for them, on one host. Throws
// what is wrong on any rank, or finish_opening() does.
std::unique_ptr<detail::StartedCall> start_call(detail::ExchangeState& state,
                                                const detail::RoutingState* routing,
                                                std::vector<Travel> travels, Opening opening,
                                                Mistake mistake, CallForm form);
void finish_opening(detail::ExchangeState& state, detail::StartedCall& call);
// A number for all that the caller of the halves must leave alone. Rows that travel coded are the
// exchange's.
std::uint64_t fingerprint(const detail::StartedCall& call);
// Throws, on all ranks and before anything is written, if one has changed that between the halves.
void expect_unchanged(detail::ExchangeState& state, const detail::StartedCall& call);
// After it the caller may change the rows.
void end_call(detail::ExchangeState& state);

// How mistakes call the memory of a payload.
struct PartNames {
  const char* in = "in";
  const char* out = "out";
};
struct DispatchForm {
  CallKind kind = CallKind::dispatch;  // the call that it is a part of
  CallForm call = {};
  PartNames names = {};
};
// `mistake`: what the caller has found.
std::unique_ptr<detail::StartedCall> start_dispatch(detail::ExchangeState& state,
                                                    const detail::RoutingState* routing,
                                                    std::span<const Payload> payloads,
                                                    const DispatchForm& form, Mistake mistake);
void finish_dispatch(detail::ExchangeState& state, std::unique_ptr<detail::StartedCall> call);

// What start_dispatch() or start_combine() left. Throws if it has not been called.
std::unique_ptr<detail::StartedCall> take_started(detail::ExchangeState& state, CallKind kind);

}  // namespace unisono::experts
