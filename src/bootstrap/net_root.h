// Rank 0's side of a meeting over the network.
#pragma once

#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/card.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// Collects the cards of all at the lobby, and tells them to all. `mine`: its own. Errors as of
// meet_over_network(); all who have come hear them too.
std::vector<BusinessCard> collect_cards(tcp::Acceptor& lobby, const BusinessCard& mine,
                                        const ConnectOptions& options);

}  // namespace unisono::comm
