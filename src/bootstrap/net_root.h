// Rank 0's side of connecting over the network.
#pragma once

#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/card.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// Collects the cards of all ranks at the rendezvous, and sends them to all ranks. `mine` is rank
// 0's own card. Errors: those of meet_over_network(), which all ranks that have come also get.
std::vector<BusinessCard> collect_cards(tcp::Acceptor& rendezvous, const BusinessCard& mine,
                                        const ConnectOptions& options);

}  // namespace unisono::comm
