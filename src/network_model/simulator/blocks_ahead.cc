#include "network_model/simulator/blocks_ahead.h"

#include <utility>

namespace unisono::network_model {

BlocksAhead::BlocksAhead(const PlayItem& item, const PathTable& paths)
    : item_(item), paths_(paths), orders_(item.actors) {}

std::unique_ptr<const MadeBlock> BlocksAhead::make(std::size_t index) {
  auto made = std::make_unique<MadeBlock>();
  made->block = item_.block(index);
  made->paths = paths_.list();
  made->order = orders_.next(made->block);
  return made;
}

std::unique_ptr<const MadeBlock> BlocksAhead::next() {
  std::unique_ptr<const MadeBlock> made = ahead_.valid() ? ahead_.get() : make(next_);
  if (++next_ < item_.block_count()) {
    // If no thread is available, the block is made on request.
    ahead_ = std::async(std::launch::async | std::launch::deferred,
                        [this, index = next_] { return make(index); });
  }
  return made;
}

}  // namespace unisono::network_model
