// Which messages of an operation an actor sends and receives, in the order of its ports.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/simulator/play.h"

namespace unisono::model {

struct PlayItem;

// Lists of numbers, one list for each key.
class Lists {
 public:
  Lists() = default;
  Lists(std::size_t keys, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& entries);
  std::span<const std::uint32_t> of(std::size_t key) const {
    return std::span(values_).subspan(first_[key], first_[key + 1] - first_[key]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> values_;
};

// Actors are counted by their place in the item here.
struct BlockOrder {
  Lists sends = {};
  Lists receives = {};                             // and local reductions
  Lists copies = {};                               // local, at no cost
  Lists needed_by = {};                            // per message: those that need it
  std::vector<std::int64_t> received_before = {};  // in earlier blocks, by actor
};

std::vector<BlockOrder> orders_of(const PlayItem& item);

// A place in the lists of one actor.
class Cursor {
 public:
  enum class Way : std::uint8_t { sends, receives };

  Cursor() = default;
  Cursor(const std::vector<PlayBlock>& blocks, const std::vector<BlockOrder>& orders,
         std::size_t actor, Way way)
      : blocks_(&blocks), orders_(&orders), actor_(actor), way_(way) {
    settle();
  }

  bool at_end() const { return blocks_ == nullptr || block_ == blocks_->size(); }
  std::size_t block() const { return block_; }
  std::int64_t step() const { return step_; }
  std::uint32_t message() const { return list()[place_]; }
  void advance() {
    ++place_;
    settle();
  }
  bool is_at(std::size_t block, std::int64_t step, std::uint32_t message) const {
    return !at_end() && block_ == block && step_ == step && this->message() == message;
  }

 private:
  std::span<const std::uint32_t> list() const {
    const BlockOrder& order = (*orders_)[block_];
    return (way_ == Way::sends ? order.sends : order.receives).of(actor_);
  }
  void settle();

  const std::vector<PlayBlock>* blocks_ = nullptr;
  const std::vector<BlockOrder>* orders_ = nullptr;
  std::size_t actor_ = 0;
  Way way_ = Way::sends;
  std::size_t block_ = 0;
  std::int64_t step_ = 0;
  std::size_t place_ = 0;
};

}  // namespace unisono::model
