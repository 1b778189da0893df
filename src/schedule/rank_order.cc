#include "schedule/rank_order.h"

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace unisono {
namespace {

// The sum of `count` ranks from `first` on, in ascending order.
struct Sum {
  int first = 0;
  int count = 1;
};

class Cells {
 public:
  explicit Cells(const Schedule& schedule) : schedule_(schedule) {}

  Sum read(int rank, Buffer buffer, int chunk) const {
    const auto found = buffer == Buffer::input ? sums_.end() : sums_.find(key(rank, buffer, chunk));
    return found == sums_.end() ? Sum{.first = rank} : found->second;
  }
  void write(int rank, Buffer buffer, int chunk, Sum sum) {
    sums_.insert_or_assign(key(rank, buffer, chunk), sum);
  }

 private:
  std::size_t key(int rank, Buffer buffer, int chunk) const {
    const std::size_t cell =
        static_cast<std::size_t>(rank) * static_cast<std::size_t>(schedule_.chunks) +
        static_cast<std::size_t>(chunk);
    return cell * 2 + (buffer == Buffer::scratch ? 1 : 0);
  }

  const Schedule& schedule_;
  std::unordered_map<std::size_t, Sum> sums_;  // of what was written
};

// Returns the contents of the target chunk after the move; nothing if the move breaks the order.
std::optional<Sum> moved(const Cells& cells, const Move& move, int chunk, int ranks) {
  const Sum source = cells.read(move.from, move.source, chunk);
  const bool partial = source.count > 1 && source.count < ranks;
  if (partial && move.from != move.to) {
    return std::nullopt;
  }
  if (move.combine == Combine::replace) {
    return source;
  }
  const Sum target = cells.read(move.to, move.target, chunk);
  if (target.first != 0 || source.count != 1 || source.first != target.count) {
    return std::nullopt;
  }
  return Sum{.first = 0, .count = target.count + 1};
}

}  // namespace

bool sums_in_rank_order(const Schedule& schedule) {
  if (!reduces(schedule.collective)) {
    return true;
  }
  Cells cells(schedule);
  struct Write {
    const Move* move = nullptr;
    int chunk = 0;
    Sum sum = {};
  };
  for (std::size_t begin = 0; begin < schedule.moves.size();) {
    std::vector<Write> writes;  // a step reads before it writes
    const int step = schedule.moves[begin].step;
    for (; begin < schedule.moves.size() && schedule.moves[begin].step == step; ++begin) {
      const Move& move = schedule.moves[begin];
      for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
        const std::optional<Sum> sum = moved(cells, move, chunk, schedule.ranks);
        if (!sum) {
          return false;
        }
        writes.push_back({.move = &move, .chunk = chunk, .sum = *sum});
      }
    }
    for (const Write& write : writes) {
      cells.write(write.move->to, write.move->target, write.chunk, write.sum);
    }
  }
  return true;
}

}  // namespace unisono
