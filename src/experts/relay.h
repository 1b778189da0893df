// Receives the rows of a dispatch from other hosts. Some ranks of this host are relays and receive
// the rows; its other ranks read the rows from the relays' memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/row_transfer.h"
#include "experts/state.h"

namespace unisono::experts {

// Allocates memory for the rows that this rank receives for its host. Called before the ranks
// agree, so that lack of memory is reported on all ranks.
void prepare_inter_host(detail::ExpertExchangeState& state, const detail::RoutingState& routing,
                        std::size_t part, const RowTransfer& transfer, Mistake& mistake);
// Starts to send the rows that leave this host and to receive.
void start_inter_host(detail::ExpertExchangeState& state, const detail::RoutingState& routing,
                      std::size_t part, const RowTransfer& transfer);
// Waits until all ranks on this host have received their rows. Returns the address of each source's
// first row, by payload and source rank; nullptr for sources on this host.
std::vector<std::vector<const std::byte*>> finish_inter_host(
    detail::ExpertExchangeState& state, const detail::RoutingState& routing,
    std::span<const RowTransfer> transfers);

}  // namespace unisono::experts
