// The open blocks of an operation, for the engine for shared links. Stored blocks are always open,
// and equal operations share them. Blocks of a source are made ahead (blocks_ahead.h), opened when
// the first rank reaches them, and dropped when all ranks and messages have left them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "network_model/simulator/order.h"
#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"

namespace unisono::network_model {

class BlocksAhead;
struct MadeBlock;

struct OpenBlock {
  const PlayBlock* block = nullptr;
  const PathList* paths = nullptr;
  const BlockOrder* order = nullptr;
};

class OpenBlocks {
 public:
  struct KeptBlocks {
    std::vector<BlockOrder> orders = {};
    std::vector<OpenBlock> open = {};
  };
  using Kept = std::shared_ptr<const KeptBlocks>;  // shared by equal items

  // Returns the opened blocks of an item that stores its blocks. Keeps references to the blocks and
  // the paths.
  static Kept keep(const PlayItem& item, const PathTable& paths);

  explicit OpenBlocks(Kept kept);
  // Opens the blocks of a source, whose paths are in the table. Keeps references.
  OpenBlocks(const PlayItem& item, const PathTable& paths);
  OpenBlocks(OpenBlocks&& other) noexcept;
  OpenBlocks& operator=(OpenBlocks&&) = delete;
  ~OpenBlocks();

  std::size_t count() const { return count_; }
  // REQUIRES: some actor has a cursor that has not left the block, or a message holds it.
  const OpenBlock& at(std::size_t index) {
    return kept_ != nullptr ? kept_->open[index] : made(index).open;
  }
  void hold(std::size_t index) {
    if (kept_ == nullptr) {
      ++made(index).users;
    }
  }
  std::size_t open_count() const { return kept_ != nullptr ? count_ : made_.size(); }
  // Reports that a holder or a cursor has finished with the block.
  void leave(std::size_t index);

 private:
  struct Made {
    std::unique_ptr<const MadeBlock> block;
    OpenBlock open = {};    // view of `block`
    std::size_t users = 0;  // cursors that have not left it yet, and messages that hold it
  };
  Made& made(std::size_t index);

  Kept kept_;
  std::size_t count_;
  std::size_t cursors_ = 0;             // cursors that visit each block
  std::unique_ptr<BlocksAhead> ahead_;  // for a source
  std::deque<Made> made_;               // a deque, because blocks must not move
  std::size_t first_ = 0;               // index of the first block in `made_`
};

// A position in the message lists of one actor.
class Cursor {
 public:
  enum class Way : std::uint8_t { sends, receives };

  Cursor() = default;
  // Keeps the reference.
  Cursor(OpenBlocks& blocks, std::size_t actor, Way way)
      : way_(way), blocks_(&blocks), actor_(actor) {
    look();
    settle();
  }

  bool at_end() const { return open_ == nullptr; }
  const OpenBlock& open() const { return *open_; }
  std::size_t block() const { return block_; }
  std::int64_t step() const { return step_; }
  std::uint32_t message() const { return message_; }
  void advance() {
    ++place_;
    settle();
  }
  bool is_at(std::size_t block, std::int64_t step, std::uint32_t message) const {
    return !at_end() && block_ == block && step_ == step && this->message() == message;
  }

 private:
  void look();
  void settle();

  const OpenBlock* open_ = nullptr;
  std::uint32_t message_ = 0;  // at the current position
  Way way_ = Way::sends;
  std::size_t block_ = 0;
  std::int64_t step_ = 0;
  std::size_t place_ = 0;
  std::span<const std::uint32_t> list_ = {};
  OpenBlocks* blocks_ = nullptr;
  std::size_t actor_ = 0;
};

}  // namespace unisono::network_model
