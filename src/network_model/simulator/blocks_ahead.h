// Makes the blocks of a source for the engine for shared links, each with its paths and orders.
// Another thread makes the next block while the current one is played, because finding paths takes
// about as long as playing.
#pragma once

#include <cstddef>
#include <future>
#include <memory>

#include "network_model/simulator/order.h"
#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"

namespace unisono::network_model {

struct MadeBlock {
  PlayBlock block;
  PathList paths;
  BlockOrder order;  // of the block
};

class BlocksAhead {
 public:
  // REQUIRES: the item has a source, whose blocks have their paths in the table. Keeps references;
  // no other code may request blocks from the source.
  BlocksAhead(const PlayItem& item, const PathTable& paths);

  // REQUIRES: the source has more blocks. Errors: those of the source.
  std::unique_ptr<const MadeBlock> next();

 private:
  std::unique_ptr<const MadeBlock> make(std::size_t index);

  const PlayItem& item_;
  const PathTable& paths_;
  OrderMaker orders_;
  std::size_t next_ = 0;
  std::future<std::unique_ptr<const MadeBlock>> ahead_;  // its destructor waits for the thread
};

}  // namespace unisono::network_model
