#include "model/simulator/unroll.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "model/simulator/number_map.h"
#include "schedule/cells.h"
#include "unisono/error.hpp"

namespace unisono::model {
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
    // Message number of each move: its first segment; the others follow it.
    std::vector<std::uint32_t> message_of(moves.size());
    NumberMap places;
    const std::size_t begin = messages_.size();
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const Move& move = moves[i];
      const auto next = static_cast<std::uint32_t>(messages_.size());
      std::uint32_t first = next;
      if (move.from != move.to) {
        const auto pair =
            static_cast<std::uint64_t>(move.from) << 32U | static_cast<std::uint32_t>(move.to);
        first = places.try_emplace(pair, next).first;
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
    message.chunks += length;
    if (move.combine == Combine::reduce) {
      message.reduced += length;
    }
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      const std::uint32_t* found =
          writer_.find(cell_key(schedule_, {move.from, move.source, chunk}));
      for (std::uint32_t entry = found == nullptr ? kNone : *found; entry != kNone;
           entry = writes_[entry].before) {
        message.needs.push_back(writes_[entry].message);
      }
    }
    std::sort(message.needs.begin(), message.needs.end());
    message.needs.erase(std::unique(message.needs.begin(), message.needs.end()),
                        message.needs.end());
  }

  // A segment needs the segments of its own number.
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
      const auto entry = static_cast<std::uint32_t>(writes_.size());
      const auto [last, is_new] =
          writer_.try_emplace(cell_key(schedule_, {move.to, move.target, chunk}), kNone);
      writes_.push_back(
          {.message = first, .before = move.combine == Combine::replace ? kNone : last});
      last = entry;
    }
  }

  const Schedule& schedule_;
  int segments_;
  std::vector<UnrolledMessage> messages_;
  // The messages (their first segments) whose data is in a cell: the last one, and by way of each
  // the one before it.
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Write {
    std::uint32_t message = 0;
    std::uint32_t before = kNone;
  };
  NumberMap writer_;
  std::vector<Write> writes_;
};

}  // namespace

std::vector<UnrolledMessage> unroll(const Schedule& schedule, int segments) {
  return Unroller(schedule, segments).run();
}

}  // namespace unisono::model
