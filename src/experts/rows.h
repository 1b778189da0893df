// How rows come from their ranks: read where they lie, or sent.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// False, and adds to `mistake`: there is no memory.
bool resize(std::vector<std::byte>& memory, std::size_t bytes, Mistake& mistake);
// `bytes` bytes of a region of the exchange that peers of this host can read; the region grows.
std::span<std::byte> shared_memory(detail::ExchangeState& state, Region& region, std::size_t bytes,
                                   Mistake& mistake);

// The name under which the peers read this memory: where it lies, or a copy of it in memory of the
// exchange. Names nothing where no other rank shares memory with this one.
SharedPlace publish(detail::ExchangeState& state, std::size_t part, std::span<const std::byte> data,
                    Mistake& mistake);

// Where the memory that a rank of this host has named is here. A rank that cannot read ends the
// world.
const std::byte* memory_of(detail::ExchangeState& state, int rank, const SharedPlace& place,
                           std::size_t bytes);
// By rank, where the memory of its opening is here: of this rank `mine`, of those of other hosts
// nowhere.
std::vector<const std::byte*> find_published(detail::ExchangeState& state,
                                             std::span<const Opening> openings, std::size_t part,
                                             const std::byte* mine);

// What travels instead of `rows` of dtype: themselves, or coded rows in memory of the exchange. On
// one host they stay as they are, also with a coding: coding them would cost a pass over memory.
// REQUIRES: a dtype that can be coded.
Travel travel_of(detail::ExchangeState& state, std::size_t part, std::span<const std::byte> rows,
                 std::size_t row_bytes, RowCoding coding, Dtype dtype, Mistake& mistake);
// Rows of dtype as they are coded. REQUIRES: a coding.
kernels::CodedRowFunctions functions_of(RowCoding coding, Dtype dtype);
// That rows of this kind can be coded; adds to `mistake` if it has none yet.
void expect_coding(Mistake& mistake, RowCoding coding, Dtype dtype, std::size_t row_bytes);

// Memory for what start_rows() sends, and for what comes. Before the ranks agree, so that a lack of
// it is told.
void prepare_rows(SentRows& rows, std::size_t sent_bytes, std::size_t own_bytes, Mistake& mistake);
// Rows to other ranks, in this order, and from them into rows.incoming, which has the size for
// them.
void start_rows(detail::ExchangeState& state,
                std::span<const std::vector<const std::byte*>> to_ranks,
                std::span<const std::size_t> rows_from_ranks, std::size_t row_bytes,
                SentRows& rows);
// In the order in which they were sent: by rank, the first.
std::vector<const std::byte*> finish_rows(SentRows& rows);

}  // namespace unisono::experts
