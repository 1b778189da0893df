// The engine for links that messages share: plays events through in the order of time.
//
// What happens at one time is handled first, then the rates of the flows that it touches are found
// again. Times that differ by rounding alone count as one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "model/simulator/fair_share.h"
#include "model/simulator/moment.h"
#include "model/simulator/order.h"
#include "model/simulator/program.h"

namespace unisono::model {

// An item that an actor takes, and its place there.
struct Turn {
  std::uint32_t item = 0;
  std::uint32_t place = 0;
};

class SharedRates {
 public:
  SharedRates(const Play& play, const PathTable& paths, const SimulationOptions& options);
  SimulationResult run() &&;

 private:
  enum class Kind : std::uint8_t { begin, entry, flow_begin, flow_end, reduced };

  struct Event {
    double time_us = 0;
    std::uint64_t number = 0;  // of equal times, the one that was made first comes first
    Kind kind = Kind::entry;
    int subject = 0;  // an actor or a flight
    std::uint32_t version = 0;

    bool operator<(const Event& other) const {  // for a queue whose top is the greatest
      return time_us != other.time_us ? time_us > other.time_us : number > other.number;
    }
  };

  // An operation that some actor is in.
  struct Operation {
    std::shared_ptr<const std::vector<BlockOrder>> orders = {};
    std::vector<std::vector<std::uint32_t>> open_needs = {};  // by block and message
    std::vector<std::vector<std::uint8_t>> copied = {};       // local copies that are done
    std::size_t actors_left = 0;
  };

  struct Actor {
    std::vector<Turn> items = {};
    std::size_t next = 0;   // of `items`
    bool inside = false;    // of the operation items[next].item
    std::size_t place = 0;  // in that item
    Operation* operation = nullptr;
    Cursor sends = {};
    Cursor receives = {};
    int sending = 0;
    std::vector<std::int64_t> receiving = {};  // the numbers of what is on the way, counted from 0
    std::int64_t received_begun = 0;
    std::int64_t copies_left = 0;
    Moment entry = {};  // of the item
    Moment last = {};   // the latest end of what it took part in
  };

  // A message under way.
  struct Flight {
    std::uint32_t item = 0;
    std::size_t block = 0;
    std::int64_t step = 0;
    std::uint32_t message = 0;
    std::int64_t receive_number = 0;
    Moment moment = {};  // of its start, then of its end
    double start_us = 0;
    double left_bytes = 0;
    double since_us = 0;  // `left_bytes` is as of then
    double rate = 0;
    std::uint32_t version = 0;
    bool flowing = false;
    std::int64_t record = -1;
  };

  // An item that others come after, or what one rank has of it.
  struct Awaited {
    std::size_t actors_left = 1;
    Moment end = {};
    std::vector<int> waiting = {};  // actors
  };

  struct RankState {
    int moving = 0;
    int active = 0;
    double moving_since_us = 0;
    double active_since_us = 0;
    double moving_us = 0;
    double computing_us = 0;
    double active_us = 0;
  };

  // Something that may now be possible, because of `trigger`. Done one after the other, not by
  // calls within calls: a chain of them may be as long as there are ranks.
  struct Task {
    enum class Kind : std::uint8_t { send, receive, copy } kind = Kind::send;
    int actor = 0;
    std::size_t block = 0;      // of a copy
    std::uint32_t message = 0;  // of a copy
    Moment trigger = {};
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const PlayItem& item_of(const Actor& actor) const {
    return play_.items[actor.items[actor.next].item];
  }
  const PlayMessage& message_of(const Flight& flight) const {
    return (*play_.items[flight.item].blocks)[flight.block].messages[flight.message];
  }

  void push(double time_us, Kind kind, int subject, std::uint32_t version = 0);
  void handle(const Event& event);
  void settle_rates();

  // shared_items.cc: what may start, and what comes after it.
  void run_tasks();
  void add_task(Task::Kind kind, int actor, const Moment& trigger) {
    tasks_.push_back({.kind = kind, .actor = actor, .trigger = trigger});
  }
  void begin_item(int index);
  bool waits_for_item(int index);
  static bool waits_for(int index, Actor& actor, Awaited& awaited);
  void end_for_waiting(Awaited& awaited, const Moment& moment);
  void end_item(int index, const Moment& moment);
  void enter(int index);
  void try_send(int index, const Moment& trigger);
  void try_receive(int index, const Moment& trigger);
  static bool is_ready(const Actor& sender, const PlayBlock& block);
  void copy(const Task& task);
  void satisfy(int index, std::size_t block, std::uint32_t message, const Moment& moment);
  void leave_if_done(int index);
  Operation& operation(std::uint32_t item);

  // shared_rates.cc: messages under way.
  void start(int index, const Moment& trigger);
  void start_reduction(int index, const Moment& trigger);
  void begin_flow(int slot);
  void end_flow(int slot);
  void arrive(int slot);
  int new_flight();
  void keep(Flight& flight, std::int64_t cause);
  void move_rank(int actor, int change, bool computing);

  const Play& play_;
  const PathTable& paths_;
  const SimulationOptions& options_;
  FairShare shares_;
  std::vector<double> link_since_us_;
  std::vector<Actor> actors_;
  std::vector<RankState> ranks_;
  std::vector<Flight> flights_;
  std::vector<int> free_flights_;
  std::map<std::uint32_t, Operation> operations_;  // those under way, by item
  std::map<std::uint32_t, Awaited> awaited_;
  std::unordered_map<std::uint64_t, Awaited> own_awaited_;  // by own_key()
  std::map<const void*, std::weak_ptr<const std::vector<BlockOrder>>> orders_;
  std::priority_queue<Event> events_;
  std::deque<Task> tasks_;
  std::uint64_t next_number_ = 0;
  double now_us_ = 0;
  Moment end_;
  SimulationResult result_;
};

}  // namespace unisono::model
