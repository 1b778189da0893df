#include "network_model/simulator/open_blocks.h"

#include <utility>

#include "network_model/simulator/blocks_ahead.h"

namespace unisono::network_model {

OpenBlocks::Kept OpenBlocks::keep(const PlayItem& item, const PathTable& paths) {
  auto kept = std::make_shared<KeptBlocks>();
  OrderMaker orders(item.actors);
  for (const PlayBlock& block : *item.blocks) {
    kept->orders.push_back(orders.next(block));
  }
  for (std::size_t i = 0; i < kept->orders.size(); ++i) {
    kept->open.push_back(
        {.block = &(*item.blocks)[i], .paths = &paths.list(), .order = &kept->orders[i]});
  }
  return kept;
}

OpenBlocks::OpenBlocks(Kept kept) : kept_(std::move(kept)), count_(kept_->open.size()) {}

OpenBlocks::OpenBlocks(const PlayItem& item, const PathTable& paths)
    : count_(item.block_count()),
      cursors_(2 * item.actors.size()),
      ahead_(std::make_unique<BlocksAhead>(item, paths)) {}

OpenBlocks::OpenBlocks(OpenBlocks&& other) noexcept = default;
OpenBlocks::~OpenBlocks() = default;

OpenBlocks::Made& OpenBlocks::made(std::size_t index) {
  while (index >= first_ + made_.size()) {
    Made& added = made_.emplace_back(Made{.block = ahead_->next(), .users = cursors_});
    added.open = {
        .block = &added.block->block, .paths = &added.block->paths, .order = &added.block->order};
  }
  return made_[index - first_];
}

void OpenBlocks::leave(std::size_t index) {
  if (kept_ != nullptr) {
    return;
  }
  --made_[index - first_].users;
  while (!made_.empty() && made_.front().users == 0) {
    made_.pop_front();
    ++first_;
  }
}

void Cursor::look() {
  open_ = block_ < blocks_->count() ? &blocks_->at(block_) : nullptr;
  if (open_ != nullptr) {
    list_ = (way_ == Way::sends ? open_->order->sends : open_->order->receives).of(actor_);
  }
}

void Cursor::settle() {
  while (open_ != nullptr) {
    if (place_ < list_.size()) {
      message_ = list_[place_];
      return;
    }
    place_ = 0;
    ++step_;
    if (list_.empty() || step_ == open_->block->repeats) {
      step_ = 0;
      const std::size_t left = block_++;
      look();
      blocks_->leave(left);
    }
  }
}

}  // namespace unisono::network_model
