#include "network_model/simulator/awaited_items.h"

namespace unisono::network_model {

AwaitedItems::AwaitedItems(const Play& play) : play_(play), gates_(play.items.size()), own_(play) {
  for (std::uint32_t item = 0; item < play.items.size(); ++item) {
    if (play.is_awaited[item]) {
      awaited_[item].actors_left = play.items[item].actors.size();
    }
  }
}

bool AwaitedItems::is_open(int actor, Awaited& awaited, Moment& entry) {
  if (awaited.actors_left > 0) {
    awaited.waiting.push_back(actor);
    return true;
  }
  entry.wait_for(awaited.end);
  return false;
}

bool AwaitedItems::holds_up(int actor, std::uint32_t item, Moment& entry) {
  const PlayItem& played = play_.items[item];
  if (!played.after.empty()) {
    Gate& gate = gates_[item];
    for (; gate.ended < played.after.size(); ++gate.ended) {
      Awaited& before = awaited_.at(static_cast<std::uint32_t>(played.after[gate.ended]));
      if (before.actors_left > 0) {
        before.waiting.push_back(actor);
        return true;
      }
      gate.end.wait_for(before.end);
    }
    entry.wait_for(gate.end);
  }
  for (const int before : played.after_own) {
    Awaited* own = own_.find(static_cast<std::size_t>(before), rank_of(actor));
    if (own != nullptr && is_open(actor, *own, entry)) {
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

std::vector<int> AwaitedItems::end(int actor, std::uint32_t item, const Moment& moment) {
  std::vector<int> going;
  if (play_.is_awaited[item]) {
    end_one(awaited_.at(item), moment, going);
  }
  if (play_.is_own_awaited[item]) {
    end_one(*own_.find(item, rank_of(actor)), moment, going);
  }
  return going;
}

}  // namespace unisono::network_model
