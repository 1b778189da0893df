// The engine for links that messages share: plays events in time order.
//
// All events of one time are handled first, then the rates of the affected flows are computed
// again. Times that differ only by rounding count as equal.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "network_model/simulator/awaited_items.h"
#include "network_model/simulator/fair_share.h"
#include "network_model/simulator/open_operations.h"
#include "network_model/simulator/program.h"
#include "network_model/simulator/shared_state.h"

namespace unisono::network_model {

class SharedRates {
 public:
  SharedRates(const Play& play, const PathTable& paths, const SimulationOptions& options);
  SimulationResult run() &&;

 private:
  // Something that `trigger` may have made possible. Tasks run from a queue instead of nested
  // calls, because a chain of them may be as long as the number of ranks.
  struct Task {
    enum class Kind : std::uint8_t { send, receive, copy } kind = Kind::send;
    int actor = 0;
    std::size_t block = 0;      // of a copy
    std::uint32_t message = 0;  // of a copy
    Moment trigger = {};
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const PlayItem& item_of(const ActorState& actor) const { return play_.items[actor.item]; }
  void handle(const EventQueue::Event& event);
  void settle_rates();

  // Implemented in shared_items.cc: starts work, and continues after it.
  void run_tasks();
  void add_task(Task::Kind kind, int actor, const Moment& trigger) {
    tasks_.push_back({.kind = kind, .actor = actor, .trigger = trigger});
  }
  void begin_item(int index);
  void end_item(int index, const Moment& moment);
  void enter(int index);
  void try_send(int index, const Moment& trigger);
  void try_receive(int index, const Moment& trigger);
  static bool is_ready(const ActorState& sender, const PlayBlock& block);
  void copy(const Task& task);
  void satisfy(int index, std::size_t block, std::uint32_t message, const Moment& moment);
  void leave_if_done(int index);

  // Implemented in shared_rates.cc: the messages in transit.
  void start(int index, const Moment& trigger);
  void start_reduction(int index, const Moment& trigger);
  void begin_flow(int slot);
  void end_flow(int slot);
  void arrive(int slot);
  int new_transfer(ActorState& actor, const Cursor& cursor);
  void keep(ActiveTransfer& transfer, std::int64_t cause);
  void move_rank(int actor, int change, bool computing) {
    times_.move(play_.rank_of_actor[at(actor)], change, computing, now_us_);
  }

  const Play& play_;
  const PathTable& paths_;
  const SimulationOptions& options_;
  FairShare shares_;
  std::vector<ActorState> actors_;
  RankClock times_;
  ActiveTransfers transfers_;
  OpenOperations operations_;
  AwaitedItems awaited_;
  EventQueue events_;
  std::deque<Task> tasks_;
  double now_us_ = 0;
  Moment end_;
  SimulationResult result_;
};

}  // namespace unisono::network_model
