// The items that actors wait for, in the engine for shared links.
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

  // Returns true if the item comes after one that has not ended; end() then names the actor.
  // Otherwise its entry is no earlier than their ends.
  bool holds_up(int actor, std::uint32_t item, Moment& entry);
  // An actor has ended an item; the actors that can go on.
  std::vector<int> end(int actor, std::uint32_t item, const Moment& moment);

 private:
  // An item that others come after, or what one rank has of it.
  struct Awaited {
    std::size_t actors_left = 1;
    Moment end = {};
    std::vector<int> waiting = {};  // actors
  };
  // The progress of the predecessors of an item, for all of its ranks: the first so many of the
  // list have ended, the last of them at `end`.
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
