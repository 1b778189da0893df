#include "model/simulator/awaited_items.h"

#include <utility>

namespace unisono::model {

AwaitedItems::AwaitedItems(const Play& play)
    : play_(play), gates_(play.items.size()), own_(play) {
  for (std::uint32_t item = 0; item < play.items.size(); ++item) {
    if (play.is_awaited[item]) {
      awaited_[item].actors_left = play.items[item].actors.size();
    }
  }
}

bool AwaitedItems::is_open(int index, ActorState& actor, Awaited& awaited) {
  if (awaited.actors_left > 0) {
    awaited.waiting.push_back(index);
    return true;
  }
  actor.entry.wait_for(awaited.end);
  return false;
}

bool AwaitedItems::holds_up(int index, ActorState& actor) {
  const PlayItem& item = play_.items[actor.item];
  if (!item.after.empty()) {
    Gate& gate = gates_[actor.item];
    for (; gate.ended < item.after.size(); ++gate.ended) {
      Awaited& before = awaited_.at(static_cast<std::uint32_t>(item.after[gate.ended]));
      if (before.actors_left > 0) {
        before.waiting.push_back(index);
        return true;
      }
      gate.end.wait_for(before.end);
    }
    actor.entry.wait_for(gate.end);
  }
  for (const int before : item.after_own) {
    Awaited* own = own_.find(static_cast<std::size_t>(before), rank_of(index));
    if (own != nullptr && is_open(index, actor, *own)) {
      return true;
    }
  }
  return false;
}

void AwaitedItems::end_one(Awaited& awaited, const Moment& moment, std::vector<int>& going) {
  awaited.end.wait_for(moment);
  if (--awaited.actors_left == 0) {
    going.insert(going.end(), awaited.waiting.begin(), awaited.waiting.end());
    awaited.waiting.clear();
  }
}

std::vector<int> AwaitedItems::end(int index, std::uint32_t item, const Moment& moment) {
  std::vector<int> going;
  if (play_.is_awaited[item]) {
    end_one(awaited_.at(item), moment, going);
  }
  if (play_.is_own_awaited[item]) {
    end_one(*own_.find(item, rank_of(index)), moment, going);
  }
  return going;
}

}  // namespace unisono::model
