// Messages of a reshard: moves in parts of bounded length, small ones together, in an order in
// which all ranks send and receive them.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {

// A receiver unpacks one message while the next ones arrive.
inline constexpr std::size_t kMessageBytes = std::size_t{1} << 20U;

// A part of a move. Every rank cuts a move, and those that pass its elements on, in the same way.
struct ReshardPart {
  std::size_t move = 0;
  ElementRanges elements = {};
  std::size_t bytes = 0;
  std::size_t offset = 0;  // in the move, in bytes
};

std::vector<ReshardPart> parts_of(const ReshardPlan& plan, std::size_t move,
                                  std::size_t message_bytes = kMessageBytes);

// A message's place in the order of all ranks; two ranks' messages in one place keep their order. A
// message that passes elements on comes at least kLead slots after those that bring them. If every
// rank waits for its messages in this order, the first one that is not complete has been posted on
// both sides: the ranks cannot block each other.
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

// A sum that this rank forms of the summands `first` to `last`, when all of them have arrived.
struct ReshardSum {
  std::size_t slot = 0;  // of the last message that it needs
  std::size_t first = 0;
  std::size_t last = 0;
  bool into_out = false;  // the rank is a target; otherwise it only passes the sum on
};

struct ReshardMessages {
  std::vector<ReshardMessage> messages = {};  // that this rank sends or receives, in order
  std::vector<ReshardSum> sums = {};          // by slot
};

ReshardMessages messages_of(const ReshardPlan& plan, int rank);

// Returns the messages of all ranks, of at most `message_bytes` or one element.
std::vector<ReshardMessage> all_messages_of(const ReshardPlan& plan, std::size_t message_bytes);

}  // namespace unisono::parallel
