// The blocks of an operation with too many messages to store: each block is made with its paths on
// request, and dropped when the next one is made.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "network_model/simulator/blocks.h"
#include "network_model/simulator/protocols.h"

namespace unisono::network_model {

class StreamedBlocks : public BlockSource {
 public:
  // State of all ranks, by actor and by rank.
  struct Ranks {
    std::vector<int> of_actor = {};
    std::vector<double> slowness = {};  // RankFault::factor
  };
  // If the topology has several protocols, examines blocks until the protocol is known. Keeps
  // references to the options and the paths. REQUIRES: an item in its short form, one actor per
  // rank.
  StreamedBlocks(const WorkItem& item, std::vector<int> actors, Ranks ranks,
                 const SimulationOptions& options, PathTable& paths);

  std::size_t count() const override { return places_.size(); }
  Size size(std::size_t index) const override;
  const PlayBlock& block(std::size_t index) override;
  const std::vector<bool>& meeting() override;
  // The protocol of the operation; nullptr if the topology has none.
  const Protocol* protocol() const { return chosen_; }

 private:
  struct Place {
    std::size_t phase = 0;
    int part = 0;
  };
  const PlayBlock& make(std::size_t index);
  double messages_in_turn() const;
  void choose_protocol();

  std::shared_ptr<const CompactSchedule> schedule_;
  double bytes_;
  std::vector<int> actors_;
  Ranks ranks_;
  PathTable& paths_;
  BlockMaker maker_;
  std::vector<Place> places_;  // the blocks that have messages
  std::optional<std::vector<bool>> meeting_;
  ProtocolChoice protocol_;
  const Protocol* chosen_ = nullptr;
  PlayBlock block_;
};

}  // namespace unisono::network_model
