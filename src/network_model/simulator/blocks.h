// Makes the blocks of operations: their messages and costs.
#pragma once

#include <cstddef>
#include <vector>

#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"
#include "network_model/simulator/simulation.h"
#include "network_model/simulator/workload.h"

namespace unisono::network_model {

class BlockMaker {
 public:
  // Keeps the references. `slowness` is by rank: RankFault::factor.
  BlockMaker(const std::vector<int>& rank_of_actor, const std::vector<double>& slowness,
             const SimulationOptions& options, PathTable& paths)
      : rank_of_actor_(rank_of_actor), slowness_(slowness), options_(options), paths_(paths) {}

  // `actors`: the actors of the item, by the ranks of the schedule.
  PlayBlock block_of(const CompactSchedule& schedule, std::size_t phase, double bytes,
                     const std::vector<int>& actors) const;
  // Makes one part of a phase.
  PlayBlock part_of(const CompactSchedule& schedule, std::size_t phase, int part, double bytes,
                    const std::vector<int>& actors) const;
  PlayBlock block_of(const Schedule& schedule, double bytes, const std::vector<int>& actors) const;

 private:
  // The bytes of a message. Encoded messages cost coding time at both ends.
  struct Load {
    double sent = 0;
    double reduced = 0;
    double coded = 0;
  };
  void add_part(PlayBlock& block, const CompactSchedule& schedule, int part, double bytes,
                const std::vector<int>& actors) const;
  void add_message(PlayBlock& block, int from, int to, const Load& load) const;

  const std::vector<int>& rank_of_actor_;
  const std::vector<double>& slowness_;
  const SimulationOptions& options_;
  PathTable& paths_;
};

}  // namespace unisono::network_model
