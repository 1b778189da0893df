// The engine for links that carry one message at a time: rates never change, so the times of
// messages follow from the previous messages, in the order of the schedule. Every rank has one
// stream. If it is not certain that messages do not share links, the engine checks for this, and
// gives up when messages meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "network_model/simulator/link_watch.h"
#include "network_model/simulator/moment.h"
#include "network_model/simulator/own_ends.h"
#include "network_model/simulator/program.h"
#include "network_model/simulator/rank_use.h"

namespace unisono::network_model {

class FixedRates {
 public:
  enum class Links : std::uint8_t { alone, watched };

  FixedRates(const Play& play, const PathTable& paths, const SimulationOptions& options,
             Links links = Links::alone);
  // Nothing if links are watched, and one may have had no room for what flowed over it at once.
  std::optional<SimulationResult> run() &&;

 private:
  // One side of an actor. Ports are kept sorted by when they are free; `began` is when the last
  // message did.
  struct Side {
    std::vector<Moment> free = {};  // `ports` for each actor
    std::vector<double> began = {};
  };
  struct Step {
    const PlayBlock* block = nullptr;
    std::size_t item = 0;
    std::int64_t number = 0;
  };
  // The state before a step, in the order of its party; the ends by message.
  struct Before {
    std::vector<double> end_us = {};
    std::vector<Moment> out = {};
    std::vector<Moment> in = {};
    std::vector<double> busy_us = {};
  };

  bool have_met() const { return watch_ && watch_->have_met(); }
  void compute(const PlayItem& item, std::size_t index);
  void operate(const PlayItem& item, std::size_t index);
  void play_needs(const Step& step);
  void play_steps(Step step);
  void end_step(const Step& step);
  // The flows that take part in a block, each once.
  struct Party {
    std::vector<int> senders = {};
    std::vector<int> receivers = {};
    std::vector<int> ranks = {};
  };
  void wait_for_earlier(const PlayItem& item);
  Party party_of(const PlayBlock& block) const;
  void remember(const Party& party);
  double most_apart_us(const Party& party) const;
  void move_on(const Party& party, double period_us, double periods);
  Moment send(const Step& step, std::size_t index, const Moment& ready);
  Moment reduce_locally(int actor, double reduce_us, const Moment& ready);
  void take_port(Side& side, int actor, const Moment& until, double began);
  void keep(const Step& step, const PlayMessage& message, double start_us, Moment& end,
            std::int64_t cause);
  void watch(const PlayMessage& message, LinkWatch::Flow flow);
  void count_links(const PlayBlock& block);

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  int rank_of(int actor) const { return play_.rank_of_actor[at(actor)]; }
  Moment& first_free(Side& side, int actor) const {
    return side.free[static_cast<std::size_t>(actor) * ports_];
  }

  const Play& play_;
  const PathTable& paths_;
  const SimulationOptions& options_;
  std::size_t ports_;
  std::optional<LinkWatch> watch_;
  std::vector<Moment> now_;     // of each actor: its items so far are done
  std::map<int, Moment> ends_;  // of the items that others come after
  OwnEnds<Moment> own_ends_;    // of these on single ranks
  Side out_;
  Side in_;
  std::vector<Moment> received_;  // by each actor, in the steps before
  std::vector<Moment> arrived_;   // at each actor in this step, or before
  RankUse use_;
  Before before_;
  SimulationResult result_;
};

}  // namespace unisono::network_model
