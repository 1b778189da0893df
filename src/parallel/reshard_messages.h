// The messages of a reshard, in the order in which all ranks send and receive them. Long moves are
// cut into parts of bounded length, and small moves share a message.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {

// The limit of a message, so that a receiver unpacks one message while the next ones arrive.
inline constexpr std::size_t kMessageBytes = std::size_t{1} << 20U;

// A part of a move. Every rank divides a move, and the moves that pass its elements on, into the
// same parts.
struct ReshardPart {
  std::size_t move = 0;
  ElementRanges elements = {};
  std::size_t bytes = 0;
  std::size_t offset = 0;  // byte offset in the move
};

std::vector<ReshardPart> parts_of(const ReshardPlan& plan, std::size_t move,
                                  std::size_t message_bytes = kMessageBytes);

// A message's position in the order of all ranks; messages of the same two ranks in one position
// keep their order. A message that forwards elements comes at least kLead slots after the messages
// that bring these elements. If every rank waits for its messages in this order, the first
// incomplete message has been posted on both sides, so the ranks cannot block each other.
struct ReshardTurn {
  std::size_t slot = 0;
  int distance = 0;  // from sender to receiver
  int from = 0;
  int hop = 0;
  auto operator<=>(const ReshardTurn&) const = default;
};

struct ReshardMessage {
  ReshardTurn turn = {};
  int to = 0;
  std::size_t bytes = 0;
  std::vector<ReshardPart> parts = {};
};

// A sum of the summands `first` to `last`, which this rank computes when all of them have arrived.
struct ReshardSum {
  std::size_t slot = 0;  // slot of the last message that it needs
  std::size_t first = 0;
  std::size_t last = 0;
  bool into_out = false;  // this rank is a target; otherwise it only passes the sum on
};

struct ReshardMessages {
  std::vector<ReshardMessage> messages = {};  // sent or received by this rank, in order
  std::vector<ReshardSum> sums = {};          // sorted by slot
};

ReshardMessages messages_of(const ReshardPlan& plan, int rank);

// Returns the messages of all ranks, of at most `message_bytes` or one element.
std::vector<ReshardMessage> all_messages_of(const ReshardPlan& plan, std::size_t message_bytes);

}  // namespace unisono::parallel
