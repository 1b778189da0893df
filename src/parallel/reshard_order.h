// The order of a reshard's messages. In a slot each rank sends at most one message to other hosts
// and receives at most one from them, so that every receiver has the full bandwidth of its link.
// Messages within a host use faster links, so a rank may have several of them per slot: as many as
// need the time of one message between hosts.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::parallel {

// A message that passes elements on comes at least this many slots after the messages that bring
// them, so that the rank has posted as many other messages when it waits for the elements.
inline constexpr std::size_t kLead = 4;

struct UnorderedMessage {
  int from = 0;
  int to = 0;
  bool within = false;  // within a host; such messages do not use the links between hosts
  std::size_t bytes = 0;
  std::vector<std::size_t> after = {};  // indices of earlier messages that bring its elements
};

// Returns the slot of each message. Messages whose elements are forwarded come first, because a
// rank that waited for these elements at the end would leave its links idle. Then come messages of
// the ranks with the most bytes left to send or receive, so that there are few more slots than the
// busiest rank has messages. Messages of the same two ranks in one slot keep the order of the list.
std::vector<std::size_t> slots_of(const std::vector<UnorderedMessage>& messages, std::size_t ranks);

}  // namespace unisono::parallel
