#include "network_model/simulator/open_operations.h"

#include <utility>

namespace unisono::network_model {

OpenBlocks OpenOperations::blocks_of(const PlayItem& item) {
  if (item.source != nullptr) {
    return {item, paths_};
  }
  auto& known = kept_[item.blocks.get()];
  OpenBlocks::Kept kept = known.lock();
  if (kept == nullptr) {
    kept = OpenBlocks::keep(item, paths_);
    known = kept;
  }
  return OpenBlocks(std::move(kept));
}

OpenOperation& OpenOperations::enter(std::uint32_t item) {
  const auto known = open_.find(item);
  if (known != open_.end()) {
    return known->second;
  }
  const PlayItem& played = play_.items[item];
  OpenOperation& operation =
      open_.emplace(item, OpenOperation{.blocks = blocks_of(played)}).first->second;
  operation.actors_left = played.actors.size();
  for (std::size_t i = 0; played.blocks != nullptr && i < played.blocks->size(); ++i) {
    const PlayBlock& block = (*played.blocks)[i];
    std::vector<std::uint32_t>& open = operation.open_needs.emplace_back();
    operation.copied.emplace_back();
    if (block.has_needs) {
      operation.copied.back().resize(block.messages.size());
      for (std::size_t message = 0; message < block.messages.size(); ++message) {
        open.push_back(static_cast<std::uint32_t>(block.needs_of(message).size()));
      }
    }
  }
  return operation;
}

void OpenOperations::leave(std::uint32_t item) {
  const auto found = open_.find(item);
  if (--found->second.actors_left == 0) {
    open_.erase(found);
  }
}

}  // namespace unisono::network_model
