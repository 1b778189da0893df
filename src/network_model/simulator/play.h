// The input of the player: the items of a workload, and an operation's messages with their costs,
// step by step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace unisono {

struct Protocol;

}

namespace unisono::network_model {

struct MessageCost {
  double overhead_us = 0;
  double latency_us = 0;  // sum over the links
  double bytes = 0;
  double reduce_us = 0;

  bool operator==(const MessageCost&) const = default;
};

// A message between two actors; an actor is one stream of one rank. There may be tens of millions
// of messages, most of which have equal costs.
struct PlayMessage {
  int from = 0;  // actors; from == to: local, using only the reducing port
  int to = 0;
  int path = 0;
  std::uint32_t cost = 0;  // index in the block

  bool is_local() const { return from == to; }
};

// A repeated step, or a part of a step. Either `needs` lists the earlier messages of the block for
// which each message waits, or the senders wait for all that they have received before, or for
// nothing.
struct PlayBlock {
  int phase = 0;
  std::int64_t repeats = 1;
  bool waits = false;
  bool has_needs = false;
  // For a step with several blocks: how many of its messages are in earlier blocks, and whether it
  // ends with this block.
  std::size_t before = 0;
  bool ends_step = true;
  std::vector<PlayMessage> messages = {};
  std::vector<MessageCost> costs = {};
  std::vector<std::uint32_t> first_need = {};  // by message; one more at the end
  std::vector<std::uint32_t> needs = {};

  const MessageCost& cost_of(const PlayMessage& message) const { return costs[message.cost]; }
  // Adds a message with this cost. Equal costs close to each other are stored once.
  void add(PlayMessage message, const MessageCost& cost) {
    constexpr std::size_t kNear = 8;
    std::size_t place = costs.size();
    while (place > 0 && costs.size() - place < kNear && costs[place - 1] != cost) {
      --place;
    }
    if (place == 0 || costs[place - 1] != cost) {
      costs.push_back(cost);
      place = costs.size();
    }
    message.cost = static_cast<std::uint32_t>(place - 1);
    messages.push_back(message);
  }
  std::span<const std::uint32_t> needs_of(std::size_t message) const {
    return std::span(needs).subspan(first_need[message],
                                    first_need[message + 1] - first_need[message]);
  }
};

// Blocks that are made on request, because there are too many messages to store.
class BlockSource {
 public:
  BlockSource() = default;
  BlockSource(const BlockSource&) = delete;
  BlockSource& operator=(const BlockSource&) = delete;
  virtual ~BlockSource() = default;

  struct Size {
    std::int64_t repeats = 1;
    std::int64_t messages = 0;  // sent in one step
  };
  virtual std::size_t count() const = 0;
  virtual Size size(std::size_t index) const = 0;
  // Makes the next block with the paths of its messages, and drops the previous block and its
  // paths. Only one thread at a time may call it, and no other thread may read paths meanwhile
  // (blocks_ahead.h).
  virtual const PlayBlock& block(std::size_t index) = 0;
  // Returns, by link, whether it carries messages, of any blocks, that share neither the sender nor
  // the receiver.
  virtual const std::vector<bool>& meeting() = 0;
};

struct PlayItem {
  std::vector<int> actors = {};
  std::vector<double> compute_us = {};  // by actor; empty for an operation
  double launch_us = 0;                 // including the start-up time of the protocol
  const Protocol* protocol = nullptr;   // of the topology; nullptr if it has none
  std::vector<int> after = {};          // items that must end on all ranks before this one begins
  std::vector<int> after_own = {};      // items that each rank itself must end first, if it is in
                                        // them
  std::shared_ptr<const std::vector<PlayBlock>> blocks = {};  // shared by equal items
  std::shared_ptr<BlockSource> source = {};                   // used instead of `blocks`

  bool is_operation() const { return blocks != nullptr || source != nullptr; }
  std::size_t block_count() const { return source != nullptr ? source->count() : blocks->size(); }
  const PlayBlock& block(std::size_t index) const {
    return source != nullptr ? source->block(index) : (*blocks)[index];
  }
  BlockSource::Size block_size(std::size_t index) const {
    if (source != nullptr) {
      return source->size(index);
    }
    const PlayBlock& block = (*blocks)[index];
    return {.repeats = block.repeats,
            .messages = std::count_if(block.messages.begin(), block.messages.end(),
                                      [](const PlayMessage& one) { return !one.is_local(); })};
  }
};

struct Play {
  std::size_t rank_count() const {
    return rank_of_actor.empty()
               ? 0
               : static_cast<std::size_t>(
                     *std::max_element(rank_of_actor.begin(), rank_of_actor.end()) + 1);
  }

  std::vector<int> rank_of_actor = {};
  std::vector<double> late_us = {};  // by actor
  std::vector<PlayItem> items = {};
  std::vector<bool> is_awaited = {};      // by item: another item waits for it
  std::vector<bool> is_own_awaited = {};  // by item: another item waits for it rank by rank
};

}  // namespace unisono::network_model
