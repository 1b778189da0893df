// The engine for links that carry one message at a time: rates never change, so the times of
// messages follow from the previous messages, in the order of the schedule. Every rank has one
// stream. If messages might share links, the engine watches for this, and gives up when messages
// meet.
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
  // Returns nothing if links are watched and a link may have been overloaded at some time.
  std::optional<SimulationResult> run() &&;

 private:
  // One side of all actors. Each actor's ports are sorted by the time at which they become free;
  // `began` is the start of its latest message.
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
  // The actors and ranks that take part in a block, each once.
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
  std::vector<Moment> now_;     // by actor: end of its items so far
  std::map<int, Moment> ends_;  // by item, for items that others wait for
  OwnEnds<Moment> own_ends_;    // likewise, by item and rank
  Side out_;
  Side in_;
  std::vector<Moment> received_;  // by actor, in earlier steps
  std::vector<Moment> arrived_;   // by actor, in this step or earlier ones
  RankUse use_;
  Before before_;
  SimulationResult result_;
};

}  // namespace unisono::network_model
