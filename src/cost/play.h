// Plays the messages of a schedule in order (cost.h). All moves from one rank to a peer in one step
// form one message. A message is ready when all moves of earlier steps that wrote its data have
// ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "schedule/cells.h"
#include "schedule/schedule.h"

namespace unisono::cost {

// A message in whole chunks (or elements, see chunk_bytes), so that sums are exact. from == to: a
// local move.
struct JoinedMessage {
  int from = 0;
  int to = 0;
  double chunks = 0;
  double reduced = 0;
  double coded = 0;
};

// `Time` has extend(Time&, const Time&), which sets the first argument to the later of the two.
template <class Time>
class MessagePlayer {
 public:
  explicit MessagePlayer(const Schedule& schedule) : schedule_(schedule) {}

  // deliver(message, ready) returns when the message's data is available.
  template <class Deliver>
  void run(const Deliver& deliver) {
    const std::span<const Move> moves(schedule_.moves);
    for (std::size_t first = 0; first < moves.size();) {
      std::size_t end = first + 1;
      while (end < moves.size() && moves[end].step == moves[first].step) {
        ++end;
      }
      run_step(moves.subspan(first, end - first), deliver);
      first = end;
    }
  }

 private:
  template <class Deliver>
  void run_step(std::span<const Move> moves, const Deliver& deliver) {
    gather(moves);
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      times_[i] = deliver(messages_[i], times_[i]);
    }
    for (std::size_t i = 0; i < moves.size(); ++i) {
      write(moves[i], times_[message_of_[i]]);
    }
  }

  // Joins the moves of a step into messages. All reads of a step come before its writes.
  void gather(std::span<const Move> moves) {
    messages_.clear();
    times_.clear();
    message_of_.clear();
    places_.clear();
    for (const Move& move : moves) {
      std::size_t place = messages_.size();
      if (move.from != move.to) {
        const auto pair =
            static_cast<std::uint64_t>(move.from) * static_cast<std::uint64_t>(schedule_.ranks) +
            static_cast<std::uint64_t>(move.to);
        place = places_.try_emplace(pair, place).first->second;
      }
      if (place == messages_.size()) {
        messages_.push_back({.from = move.from, .to = move.to});
        times_.emplace_back();
      }
      message_of_.push_back(place);
      JoinedMessage& message = messages_[place];
      const auto length = static_cast<double>(length_of(schedule_, move));
      message.chunks += length * coded_share(move.code);
      message.coded += move.code == MoveCode::none ? 0 : length;
      message.reduced += move.combine == Combine::reduce ? length : 0;
      for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
        const auto found = written_.find(cell_key(schedule_, {move.from, move.source, chunk}));
        if (found != written_.end()) {
          extend(times_[place], found->second);
        }
      }
    }
  }

  // The previous value of a reduction's target is always ready: the rank received it through the
  // same port.
  void write(const Move& move, const Time& ready) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      written_[cell_key(schedule_, {move.to, move.target, chunk})] = ready;
    }
  }

  const Schedule& schedule_;
  std::unordered_map<std::uint64_t, Time> written_;  // by cell
  std::vector<JoinedMessage> messages_;              // of the current step
  std::vector<Time> times_;                          // by message: when ready, then when delivered
  std::vector<std::size_t> message_of_;              // by move of the step
  std::unordered_map<std::uint64_t, std::size_t> places_;
};

}  // namespace unisono::cost
