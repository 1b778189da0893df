// Tracks the items that actors wait for, in the engine for shared links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "network_model/simulator/moment.h"
#include "network_model/simulator/own_ends.h"
#include "network_model/simulator/play.h"

namespace unisono::network_model {

class AwaitedItems {
 public:
  // Keeps the reference.
  explicit AwaitedItems(const Play& play);

  // Returns true if the item must wait for another item that has not ended; end() later returns the
  // actor. Otherwise moves `entry` to the end of the latest item before it.
  bool holds_up(int actor, std::uint32_t item, Moment& entry);
  // Records that an actor has ended an item. Returns the actors that can continue.
  std::vector<int> end(int actor, std::uint32_t item, const Moment& moment);

 private:
  // An item that other items wait for, or one rank's part of such an item.
  struct Awaited {
    std::size_t actors_left = 1;
    Moment end = {};
    std::vector<int> waiting = {};  // actors
  };
  // The number of an item's predecessors that have ended, in list order and for all its ranks, and
  // when the last of them ended.
  struct Gate {
    std::size_t ended = 0;
    Moment end = {};
  };

  int rank_of(int actor) const { return play_.rank_of_actor[static_cast<std::size_t>(actor)]; }
  static bool is_open(int actor, Awaited& awaited, Moment& entry);
  static void end_one(Awaited& awaited, const Moment& moment, std::vector<int>& going);

  const Play& play_;
  std::map<std::uint32_t, Awaited> awaited_;
  std::vector<Gate> gates_;  // by item
  OwnEnds<Awaited> own_;
};

}  // namespace unisono::network_model
