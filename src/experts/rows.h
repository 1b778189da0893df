// Accesses rows of other ranks: by direct reads, or by messages.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/state.h"

namespace unisono::experts {

// Returns false and sets `mistake` if there is no memory.
bool resize(std::vector<std::byte>& memory, std::size_t bytes, Mistake& mistake);
// Returns `bytes` bytes of an exchange's region that peers on this host can read. Enlarges the
// region if needed.
std::span<std::byte> shared_memory(detail::ExpertExchangeState& state, Region& region,
                                   std::size_t bytes, Mistake& mistake);

// Returns the name under which peers read `data`, either in place or copied to the exchange's
// memory. The name is empty if no other rank shares memory with this rank.
SharedPlace publish(detail::ExpertExchangeState& state, std::size_t part,
                    std::span<const std::byte> data, Mistake& mistake);

// Returns the local address of memory that a rank on this host has named. If this rank cannot read
// the memory, ends the world.
const std::byte* memory_of(detail::ExpertExchangeState& state, int rank, const SharedPlace& place,
                           std::size_t bytes);
// Returns the local address of the memory that each rank has announced, by rank: `mine` for this
// rank, nullptr for ranks on other hosts.
std::vector<const std::byte*> find_published(detail::ExpertExchangeState& state,
                                             std::span<const CallHeader> headers, std::size_t part,
                                             const std::byte* mine);

// Returns the transfer for `rows` of dtype: the rows themselves, or coded rows in the exchange's
// memory. On one host rows are never coded, because coding would cost a pass over memory. REQUIRES:
// the dtype can be coded.
RowTransfer row_transfer_of(detail::ExpertExchangeState& state, std::size_t part,
                            std::span<const std::byte> rows, std::size_t row_bytes,
                            RowCoding coding, Dtype dtype, Mistake& mistake);
// Returns the functions that code rows of dtype. REQUIRES: `coding` is not none.
kernels::CodedRowFunctions functions_of(RowCoding coding, Dtype dtype);
// Checks that rows of this kind can be coded. Sets `mistake` unless it is already set.
void expect_coding(Mistake& mistake, RowCoding coding, Dtype dtype, std::size_t row_bytes);

// Allocates memory for start_rows() and for the received rows. Called before the ranks agree, so
// that lack of memory is reported on all ranks.
void prepare_rows(SentRows& rows, std::size_t sent_bytes, std::size_t own_bytes, Mistake& mistake);
// Starts to send rows to other ranks, in this order, and to receive into rows.incoming, which must
// have the size of all received rows.
void start_rows(detail::ExpertExchangeState& state,
                std::span<const std::vector<const std::byte*>> to_ranks,
                std::span<const std::size_t> rows_from_ranks, std::size_t row_bytes,
                SentRows& rows);
// Waits for the transfer. Returns the address of each rank's first row; the rows are in sending
// order.
std::vector<const std::byte*> finish_rows(SentRows& rows);

}  // namespace unisono::experts
