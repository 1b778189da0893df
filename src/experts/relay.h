// The rows of a dispatch that come from other hosts: they are sent to the relays on this host, and
// its ranks read them from the relays' memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/row_transfer.h"
#include "experts/state.h"

namespace unisono::experts {

// Allocates memory for the rows that this rank takes for its host. Done before the ranks agree, so
// that a lack of memory is reported.
void prepare_inter_host(detail::ExpertExchangeState& state, const detail::RoutingState& routing,
                        std::size_t part, const RowTransfer& transfer, Mistake& mistake);
// Sends the rows that leave this host, and begins to receive.
void start_inter_host(detail::ExpertExchangeState& state, const detail::RoutingState& routing,
                      std::size_t part, const RowTransfer& transfer);
// Waits until all ranks on this host have received. Returns, by payload and source rank, where the
// source's rows begin; nullptr for ranks on this host.
std::vector<std::vector<const std::byte*>> finish_inter_host(
    detail::ExpertExchangeState& state, const detail::RoutingState& routing,
    std::span<const RowTransfer> transfers);

}  // namespace unisono::experts
