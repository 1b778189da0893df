// Rows of a dispatch that come from other hosts: to the relays of this host, whose memory its ranks
// read.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experts/agreement.h"
#include "experts/state.h"
#include "experts/travel.h"

namespace unisono::experts {

// Memory for what this rank takes for its host. Before the ranks agree, so that a lack of it is
// told.
void prepare_crossing(detail::ExchangeState& state, const detail::RoutingState& routing,
                      std::size_t part, const Travel& travel, Mistake& mistake);
// Sends what leaves this host, and begins to take what comes.
void start_crossing(detail::ExchangeState& state, const detail::RoutingState& routing,
                    std::size_t part, const Travel& travel);
// Waits until all ranks of this host have what they take. By payload and source rank, where the
// rows of it begin; of ranks of this host nullptr.
std::vector<std::vector<const std::byte*>> finish_crossing(detail::ExchangeState& state,
                                                           const detail::RoutingState& routing,
                                                           std::span<const Travel> travels);

}  // namespace unisono::experts
