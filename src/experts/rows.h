// Access to the rows of other ranks: read directly, or sent.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// Returns false and adds to `mistake` without memory.
bool resize(std::vector<std::byte>& memory, std::size_t bytes, Mistake& mistake);
// Returns `bytes` bytes of a region of the exchange that peers on this host can read; the region
// grows.
std::span<std::byte> shared_memory(detail::ExpertExchangeState& state, Region& region,
                                   std::size_t bytes, Mistake& mistake);

// Returns the name under which peers read this memory: in place, or a copy in the exchange's
// memory. Names nothing if no other rank shares memory with this one.
SharedPlace publish(detail::ExpertExchangeState& state, std::size_t part,
                    std::span<const std::byte> data, Mistake& mistake);

// Returns the local address of the memory that a rank on this host has named. If this rank cannot
// read it, the world ends.
const std::byte* memory_of(detail::ExpertExchangeState& state, int rank, const SharedPlace& place,
                           std::size_t bytes);
// Returns the local address of each rank's announced memory, by rank: `mine` for this rank, none
// for ranks on other hosts.
std::vector<const std::byte*> find_published(detail::ExpertExchangeState& state,
                                             std::span<const CallHeader> headers, std::size_t part,
                                             const std::byte* mine);

// Returns what is sent instead of `rows` of dtype: the rows themselves, or coded rows in the
// exchange's memory. On one host rows are not coded, even with a coding, because that would cost a
// pass over memory. REQUIRES: a dtype that can be coded.
RowTransfer row_transfer_of(detail::ExpertExchangeState& state, std::size_t part,
                            std::span<const std::byte> rows, std::size_t row_bytes,
                            RowCoding coding, Dtype dtype, Mistake& mistake);
// Returns the functions that code rows of dtype. REQUIRES: a coding.
kernels::CodedRowFunctions functions_of(RowCoding coding, Dtype dtype);
// Checks that rows of this kind can be coded; adds to `mistake` if it has none yet.
void expect_coding(Mistake& mistake, RowCoding coding, Dtype dtype, std::size_t row_bytes);

// Allocates memory for start_rows() and for the received rows. Done before the ranks agree, so that
// a lack of memory is reported.
void prepare_rows(SentRows& rows, std::size_t sent_bytes, std::size_t own_bytes, Mistake& mistake);
// Sends rows to other ranks, in this order, and receives into rows.incoming, which must have their
// size.
void start_rows(detail::ExpertExchangeState& state,
                std::span<const std::vector<const std::byte*>> to_ranks,
                std::span<const std::size_t> rows_from_ranks, std::size_t row_bytes,
                SentRows& rows);
// Waits. Returns, by rank, the first row, in the order in which they were sent.
std::vector<const std::byte*> finish_rows(SentRows& rows);

}  // namespace unisono::experts
