// The order of a reshard's messages: slots in which each rank sends at most one message and
// receives at most one, so that every receiver has the full bandwidth of its link.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::parallel {

struct UnorderedMessage {
  int from = 0;
  int to = 0;
  std::size_t bytes = 0;
  std::size_t ready = 0;  // the first slot that it may have
};

// Returns the slot of each message. Ranks with the most left to send or receive go first, so that
// there are few more slots than the busiest rank has messages. Messages of one pair of ranks that
// are ready together keep their order.
std::vector<std::size_t> slots_of(const std::vector<UnorderedMessage>& messages, std::size_t ranks);

}  // namespace unisono::parallel
