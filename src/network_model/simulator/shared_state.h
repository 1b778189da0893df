// The state of the engine for shared links: actors, operations, messages and ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "network_model/simulator/moment.h"
#include "network_model/simulator/open_operations.h"

namespace unisono::network_model {

// The pending events in time order.
class EventQueue {
 public:
  enum class Kind : std::uint8_t { begin, entry, flow_begin, flow_end, reduced };
  struct Event {
    double time_us = 0;
    std::uint64_t number = 0;  // orders equal times: first made, first out
    Kind kind = Kind::entry;
    int subject = 0;  // an actor or a flight

    bool comes_before(const Event& other) const {
      return time_us != other.time_us ? time_us < other.time_us : number < other.number;
    }
  };

  void push(double time_us, Kind kind, int subject);
  // Moves the only end of a flight.
  void move_end(int transfer, double time_us);
  bool empty() const { return events_.empty(); }
  double next_us() const { return events_.front().time_us; }
  Event pop();

 private:
  void put(std::size_t place, const Event& event);
  void rise(std::size_t place, const Event& event);
  void sink(std::size_t place, const Event& event);

  static constexpr std::size_t kNone = SIZE_MAX;
  std::vector<Event> events_;      // a heap with four branches
  std::vector<std::size_t> ends_;  // by flight: position of its end in the heap
  std::uint64_t next_number_ = 0;
};

// Measures the time in which each rank moves data, computes, or does either.
class RankClock {
 public:
  explicit RankClock(std::size_t ranks) : ranks_(ranks) {}

  // Records that a rank begins (1) or ends (-1) something.
  void move(int rank, int change, bool computing, double now_us) {
    State& state = ranks_[static_cast<std::size_t>(rank)];
    count(state.active, state.active_since_us, state.active_us, change, now_us);
    if (!computing) {
      count(state.moving, state.moving_since_us, state.moving_us, change, now_us);
    }
  }
  void add_computing(int rank, double us) {
    ranks_[static_cast<std::size_t>(rank)].computing_us += us;
  }
  // REQUIRES: nothing is in progress.
  std::vector<RankTimes> uses(double end_us) const {
    std::vector<RankTimes> uses;
    for (const State& rank : ranks_) {
      uses.push_back({.moving_us = rank.moving_us,
                      .computing_us = rank.computing_us,
                      .waiting_us = std::max(0.0, end_us - rank.active_us)});
    }
    return uses;
  }

 private:
  struct State {
    int moving = 0;
    int active = 0;
    double moving_since_us = 0;
    double active_since_us = 0;
    double moving_us = 0;
    double computing_us = 0;
    double active_us = 0;
  };

  static void count(int& number, double& since_us, double& sum_us, int change, double now_us) {
    if (change > 0 && number == 0) {
      since_us = now_us;
    }
    number += change;
    if (change < 0 && number == 0) {
      sum_us += now_us - since_us;
    }
  }

  std::vector<State> ranks_;
};

// An item of an actor, and the actor's position in it.
struct Turn {
  std::uint32_t item = 0;
  std::uint32_t place = 0;
};

// The state of an actor. Frequently used members come first.
struct alignas(64) ActorState {
  bool inside = false;     // has entered the operation `item`
  std::uint32_t item = 0;  // items[next].item
  int sending = 0;
  OpenOperation* operation = nullptr;
  Cursor receives = {};
  std::vector<std::int64_t> receiving = {};  // numbers of the messages in transit to it, counted
                                             // from 0
  Cursor sends = {};
  std::int64_t received_begun = 0;
  std::size_t place = 0;  // position in that item
  std::int64_t copies_left = 0;
  Moment last = {};   // latest end of the messages it took part in
  Moment entry = {};  // when it entered the item
  std::vector<Turn> items = {};
  std::size_t next = 0;  // index in `items`
};

// A message in transit. The members that its begin and end need come first, so that they need not
// be looked up again.
struct ActiveTransfer {
  int from = 0;  // actors
  int to = 0;
  double bytes = 0;
  double reduce_us = 0;
  double left_bytes = 0;
  double since_us = 0;  // time at which `left_bytes` was computed
  double rate = 0;
  std::span<const int> links = {};
  std::span<const double> shares = {};  // PathList::shares()
  bool flowing = false;
  const OpenBlock* open = nullptr;
  std::size_t block = 0;
  std::uint32_t message = 0;  // index in the block
  std::uint32_t item = 0;
  std::int64_t step = 0;
  std::int64_t receive_number = 0;
  Moment moment = {};  // its start, later its end
  double start_us = 0;
  std::int64_t record = -1;
};

// The messages in transit.
class ActiveTransfers {
 public:
  ActiveTransfer& operator[](int slot) { return transfers_[static_cast<std::size_t>(slot)]; }
  // Returns a free slot, whose contents are undefined.
  int take() {
    if (free_.empty()) {
      free_.push_back(static_cast<int>(transfers_.size()));
      transfers_.emplace_back();
    }
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(int slot) { free_.push_back(slot); }

 private:
  std::vector<ActiveTransfer> transfers_;
  std::vector<int> free_;
};

}  // namespace unisono::network_model
