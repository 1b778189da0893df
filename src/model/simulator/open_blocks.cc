#include "model/simulator/open_blocks.h"

#include <utility>

namespace unisono::model {

OpenBlocks::Kept OpenBlocks::keep(const PlayItem& item, const PathTable& paths) {
  std::vector<OpenBlock> kept;
  OrderMaker orders(item.actors);
  for (const PlayBlock& block : *item.blocks) {
    kept.push_back({.block = &block, .paths = &paths.list(), .order = orders.next(block)});
  }
  return std::make_shared<const std::vector<OpenBlock>>(std::move(kept));
}

OpenBlocks::OpenBlocks(const PlayItem& item, const PathTable& paths)
    : count_(item.block_count()), item_(&item), paths_(&paths), orders_(item.actors) {}

OpenBlocks::Made& OpenBlocks::made(std::size_t index) {
  while (index >= first_ + made_.size()) {
    const std::size_t next = first_ + made_.size();
    Made& added = made_.emplace_back();
    added.block = item_->block(next);
    added.paths = paths_->list();
    added.open = {
        .block = &added.block, .paths = &added.paths, .order = orders_->next(added.block)};
    added.users = 2 * item_->actors.size();  // both cursors of each
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
    list_ = (way_ == Way::sends ? open_->order.sends : open_->order.receives).of(actor_);
  }
}

void Cursor::settle() {
  while (open_ != nullptr) {
    if (place_ < list_.size()) {
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

}  // namespace unisono::model
