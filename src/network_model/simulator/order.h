// The messages of a block that an actor sends and receives, in the order of its ports.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "network_model/simulator/play.h"

namespace unisono::network_model {

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

// The messages of a block by actor. Actors are numbered by their position in the item.
struct BlockOrder {
  Lists sends = {};
  Lists receives = {};                             // and local reductions
  Lists copies = {};                               // local, at no cost
  Lists needed_by = {};                            // by message: the messages that need it
  std::vector<std::int64_t> received_before = {};  // by actor, in earlier steps
};

// Makes the orders of an item's blocks, in block order.
class OrderMaker {
 public:
  explicit OrderMaker(const std::vector<int>& actors);
  BlockOrder next(const PlayBlock& block);

 private:
  std::uint32_t place(int actor) const {
    return places_[static_cast<std::size_t>(actor - first_actor_)];
  }

  int first_actor_ = 0;
  std::vector<std::uint32_t> places_;   // position of each actor in the item
  std::vector<std::int64_t> received_;  // by position, so far
  std::vector<std::int64_t> before_;    // by position, before the step
};

}  // namespace unisono::network_model
