// The operations that actors are in, for the engine for shared links.
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
  // By block and message, where blocks have needs.
  std::vector<std::vector<std::uint32_t>> open_needs = {};
  std::vector<std::vector<std::uint8_t>> copied = {};  // local copies that are done
  std::size_t actors_left = 0;
};

class OpenOperations {
 public:
  // Keeps the references.
  OpenOperations(const Play& play, const PathTable& paths) : play_(play), paths_(paths) {}

  // Returns the operation of an item, from its first actor on. It does not move.
  OpenOperation& enter(std::uint32_t item);
  // An actor is through with it.
  void leave(std::uint32_t item);

 private:
  OpenBlocks blocks_of(const PlayItem& item);

  const Play& play_;
  const PathTable& paths_;
  std::map<std::uint32_t, OpenOperation> open_;                              // by item
  std::map<const void*, std::weak_ptr<const OpenBlocks::KeptBlocks>> kept_;  // by blocks
};

}  // namespace unisono::network_model
