#include "network_model/simulator/unroll.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "schedule/cells.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

class Unroller {
 public:
  Unroller(const Schedule& schedule, int segments) : schedule_(schedule), segments_(segments) {}

  std::vector<UnrolledMessage> run() {
    const auto& moves = schedule_.moves;
    if (static_cast<std::int64_t>(moves.size()) * segments_ > kMostMessages) {
      throw Error(ErrorCode::usage, "the schedule has more than " + std::to_string(kMostMessages) +
                                        " messages\nuse fewer ranks or larger segments");
    }
    for (std::size_t first = 0; first < moves.size();) {
      std::size_t last = first;
      while (last < moves.size() && moves[last].step == moves[first].step) {
        ++last;
      }
      add_step(std::span(moves).subspan(first, last - first));
      first = last;
    }
    return std::move(messages_);
  }

 private:
  void add_step(std::span<const Move> moves) {
    // Number of each move's message: its first segment; the other segments follow.
    std::vector<std::uint32_t> message_of(moves.size());
    std::map<std::pair<int, int>, std::uint32_t> places;
    const std::size_t begin = messages_.size();
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const Move& move = moves[i];
      const auto next = static_cast<std::uint32_t>(messages_.size());
      std::uint32_t first = next;
      if (move.from != move.to) {
        first = places.try_emplace(std::pair(move.from, move.to), next).first->second;
      }
      if (first == next) {
        messages_.resize(messages_.size() + static_cast<std::size_t>(segments_),
                         {.from = move.from, .to = move.to});
      }
      message_of[i] = first;
    }
    for (std::size_t i = 0; i < moves.size(); ++i) {
      read(moves[i], messages_[message_of[i]]);
    }
    for (std::size_t first = begin; first < messages_.size();
         first += static_cast<std::size_t>(segments_)) {
      copy_to_segments(first);
    }
    for (std::size_t i = 0; i < moves.size(); ++i) {
      write(moves[i], message_of[i]);
    }
  }

  void read(const Move& move, UnrolledMessage& message) const {
    const double length = static_cast<double>(length_of(schedule_, move)) / segments_;
    message.chunks += length * coded_share(move.code);
    message.coded += move.code == MoveCode::none ? 0 : length;
    if (move.combine == Combine::reduce) {
      message.reduced += length;
    }
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      const auto found = writers_.find(cell_key(schedule_, {move.from, move.source, chunk}));
      if (found != writers_.end()) {
        message.needs.insert(message.needs.end(), found->second.begin(), found->second.end());
      }
    }
    std::sort(message.needs.begin(), message.needs.end());
    message.needs.erase(std::unique(message.needs.begin(), message.needs.end()),
                        message.needs.end());
  }

  // A segment needs the segments with its own number.
  void copy_to_segments(std::size_t first) {
    for (int segment = 1; segment < segments_; ++segment) {
      UnrolledMessage& message = messages_[first + static_cast<std::size_t>(segment)];
      message = messages_[first];
      for (std::uint32_t& need : message.needs) {
        need += static_cast<std::uint32_t>(segment);
      }
    }
  }

  void write(const Move& move, std::uint32_t first) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      std::vector<std::uint32_t>& writers =
          writers_[cell_key(schedule_, {move.to, move.target, chunk})];
      if (move.combine == Combine::replace) {
        writers.clear();
      }
      writers.push_back(first);
    }
  }

  const Schedule& schedule_;
  int segments_;
  std::vector<UnrolledMessage> messages_;
  // By cell: the messages (their first segments) whose data it holds.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> writers_;
};

}  // namespace

std::vector<UnrolledMessage> unroll(const Schedule& schedule, int segments) {
  return Unroller(schedule, segments).run();
}

}  // namespace unisono::network_model
