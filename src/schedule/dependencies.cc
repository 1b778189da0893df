#include "schedule/dependencies.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "schedule/cells.h"

namespace unisono {
namespace {

struct Access {
  std::uint64_t cell = 0;
  int step = 0;
  bool write = false;  // sorts reads before writes
  std::uint32_t event = 0;

  friend auto operator<=>(const Access&, const Access&) = default;
};

class Accesses {
 public:
  Accesses(const Schedule& schedule, Aliasing aliasing)
      : schedule_(schedule), aliasing_(aliasing), first_writes_(schedule) {
    for (std::size_t move = 0; move < schedule.moves.size(); ++move) {
      add(move);
    }
    std::sort(list_.begin(), list_.end());
  }

  const std::vector<Access>& list() const { return list_; }

 private:
  void add(std::size_t index) {
    const Move& move = schedule_.moves[index];
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      const Cell target{move.to, move.target, chunk};
      read({move.from, move.source, chunk}, move.step, read_event(index));
      if (move.combine == Combine::reduce) {
        read(target, move.step, write_event(index));
      }
      list_.push_back({key(target), move.step, true, write_event(index)});
    }
  }

  void read(Cell cell, int step, std::uint32_t event) {
    list_.push_back({key(first_writes_.read_through(cell, step)), step, false, event});
  }

  // In place, the input is the output that lies on it.
  std::uint64_t key(Cell cell) const {
    if (aliasing_ == Aliasing::in_place && cell.buffer == Buffer::input) {
      const int chunk = chunk_in_place(schedule_, cell.rank, cell.chunk);
      if (chunk >= 0) {
        cell = {cell.rank, Buffer::output, chunk};
      }
    }
    return cell_key(schedule_, cell);
  }

  const Schedule& schedule_;
  Aliasing aliasing_;
  FirstWrites first_writes_;
  std::vector<Access> list_;
};

using Edge = std::pair<std::uint32_t, std::uint32_t>;  // (event, what it waits for)

std::vector<Edge> edges(const std::vector<Access>& accesses) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<Edge> result;
  std::vector<std::uint32_t> readers;  // since the last write
  std::uint32_t writer = kNone;
  const auto wait = [&result](std::uint32_t event, std::uint32_t on) {
    if (on != kNone && on != event) {
      result.emplace_back(event, on);
    }
  };
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (i == 0 || accesses[i - 1].cell != access.cell) {
      readers.clear();
      writer = kNone;
    }
    wait(access.event, writer);
    if (access.write) {
      for (const std::uint32_t reader : readers) {
        wait(access.event, reader);
      }
      readers.clear();
      writer = access.event;
    } else {
      readers.push_back(access.event);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace

Dependencies dependencies(const Schedule& schedule, Aliasing aliasing) {
  const Accesses accesses(schedule, aliasing);
  const std::vector<Edge> sorted = edges(accesses.list());
  Dependencies result;
  result.first.assign(2 * schedule.moves.size() + 1, 0);
  result.events.reserve(sorted.size());
  for (const auto& [event, on] : sorted) {
    ++result.first[event + 1];
    result.events.push_back(on);
  }
  for (std::size_t event = 0; event + 1 < result.first.size(); ++event) {
    result.first[event + 1] += result.first[event];
  }
  return result;
}

}  // namespace unisono
