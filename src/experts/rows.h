// How rows come from their ranks: read where they lie, or sent.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// The name under which the peers read this memory: where it lies, or a copy of it in memory of the
// exchange. Names nothing where ranks do not share memory.
SharedPlace publish(detail::ExchangeState& state, std::size_t part, std::span<const std::byte> data,
                    Mistake& mistake);

// By rank, where that memory begins here: what the openings name, of this rank `mine`. `is_needed`
// says of which ranks. A rank that cannot read ends the world.
std::vector<const std::byte*> find_published(detail::ExchangeState& state,
                                             std::span<const Opening> openings, std::size_t part,
                                             const std::byte* mine);

// What travels instead of `rows` of dtype: themselves, or coded rows in memory of the exchange.
// REQUIRES: a dtype that can be coded.
Travel travel_of(detail::ExchangeState& state, std::size_t part, std::span<const std::byte> rows,
                 std::size_t row_bytes, RowCoding coding, Dtype dtype, Mistake& mistake);
// That rows of this kind can be coded; adds to `mistake` if it has none yet.
void expect_coding(Mistake& mistake, RowCoding coding, Dtype dtype, std::size_t row_bytes);

// Rows to other ranks, in this order, and from them.
void start_rows(detail::ExchangeState& state,
                std::span<const std::vector<const std::byte*>> to_ranks,
                std::span<const std::size_t> rows_from_ranks, std::size_t row_bytes,
                SentRows& rows);
// In the order in which they were sent: by rank, the first.
std::vector<const std::byte*> finish_rows(SentRows& rows);

}  // namespace unisono::experts
