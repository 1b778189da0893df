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
    Made& made = made_.emplace_back();
    made.block = item_->block(next);
    made.paths = paths_->list();
    made.open = {.block = &made.block, .paths = &made.paths, .order = orders_->next(made.block)};
    made.users = 2 * item_->actors.size();  // both cursors of each
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
