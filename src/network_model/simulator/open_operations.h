// The operations that actors currently take part in, for the engine for shared links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "network_model/simulator/open_blocks.h"
#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"

namespace unisono::network_model {

struct OpenOperation {
  OpenBlocks blocks;
  // Open needs by block and message, for blocks that have needs.
  std::vector<std::vector<std::uint32_t>> open_needs = {};
  std::vector<std::vector<std::uint8_t>> copied = {};  // completed local copies, by block and
                                                       // message
  std::size_t actors_left = 0;
};

class OpenOperations {
 public:
  // Keeps the references.
  OpenOperations(const Play& play, const PathTable& paths) : play_(play), paths_(paths) {}

  // Returns the operation of an item; the first actor to enter creates it. The reference stays
  // valid until the last actor leaves.
  OpenOperation& enter(std::uint32_t item);
  // Reports that an actor has finished the operation.
  void leave(std::uint32_t item);

 private:
  OpenBlocks blocks_of(const PlayItem& item);

  const Play& play_;
  const PathTable& paths_;
  std::map<std::uint32_t, OpenOperation> open_;  // by item
  // By the address of the blocks.
  std::map<const void*, std::weak_ptr<const OpenBlocks::KeptBlocks>> kept_;
};

}  // namespace unisono::network_model
