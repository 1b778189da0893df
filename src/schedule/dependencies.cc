#include "schedule/dependencies.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "schedule/cells.h"
#include "schedule/grouped.h"

namespace unisono {
namespace {

// An event that reads or writes a place: a buffer of a rank, for one chunk.
struct Access {
  std::uint32_t place = 0;
  std::uint32_t event = 0;
  int step = 0;
  bool write = false;
};

// The accesses of each chunk, in the order of the moves.
class Accesses {
 public:
  Accesses(const Schedule& schedule, Aliasing aliasing)
      : schedule_(schedule), aliasing_(aliasing), first_writes_(schedule) {
    for (std::size_t move = 0; move < schedule.moves.size(); ++move) {
      add(move);
    }
  }

  Grouped<Access> by_chunk() const {
    return {static_cast<std::size_t>(schedule_.chunks), [this](const auto& visit) {
              for (std::size_t i = 0; i < list_.size(); ++i) {
                visit(chunks_[i], list_[i]);
              }
            }};
  }

 private:
  void add(std::size_t index) {
    const Move& move = schedule_.moves[index];
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      const Cell target{move.to, move.target, chunk};
      read({move.from, move.source, chunk}, move.step, read_event(index));
      if (move.combine == Combine::reduce) {
        read(target, move.step, write_event(index));
      }
      note(target, {.event = write_event(index), .step = move.step, .write = true});
    }
  }

  void read(Cell cell, int step, std::uint32_t event) {
    note(first_writes_.read_through(cell, step), {.event = event, .step = step});
  }

  // Notes an access. In place, an access to the input is an access to the output in the same
  // memory.
  void note(Cell cell, Access access) {
    if (aliasing_ == Aliasing::in_place && cell.buffer == Buffer::input) {
      const int chunk = chunk_in_place(schedule_, cell.rank, cell.chunk);
      if (chunk >= 0) {
        cell = {cell.rank, Buffer::output, chunk};
      }
    }
    access.place =
        static_cast<std::uint32_t>(cell.rank) * 3 + static_cast<std::uint32_t>(cell.buffer);
    list_.push_back(access);
    chunks_.push_back(static_cast<std::uint32_t>(cell.chunk));
  }

  const Schedule& schedule_;
  Aliasing aliasing_;
  FirstWrites first_writes_;
  std::vector<Access> list_;
  std::vector<std::uint32_t> chunks_;  // of each access
};

using Edge = std::pair<std::uint32_t, std::uint32_t>;  // (event, what it waits for)

// Plays the accesses of one chunk in order: within a step, all reads come before all writes.
class Edges {
 public:
  explicit Edges(int ranks) : places_(3 * static_cast<std::size_t>(ranks)) {}

  void add_chunk(std::span<const Access> accesses) {
    for (std::size_t begin = 0; begin < accesses.size();) {
      std::size_t end = begin;
      while (end < accesses.size() && accesses[end].step == accesses[begin].step) {
        ++end;
      }
      const auto step = accesses.subspan(begin, end - begin);
      for (const Access& access : step) {
        if (!access.write) {
          read(places_[access.place], access.event);
        }
      }
      for (const Access& access : step) {
        if (access.write) {
          write(places_[access.place], access.event);
        }
      }
      begin = end;
    }
    for (const Access& access : accesses) {
      places_[access.place].writer = kNone;
      places_[access.place].readers.clear();
    }
  }
  const std::vector<Edge>& list() const { return list_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Place {
    std::uint32_t writer = kNone;
    std::vector<std::uint32_t> readers = {};  // since it was written
  };

  void wait(std::uint32_t event, std::uint32_t on) {
    if (on != kNone && on != event) {
      list_.emplace_back(event, on);
    }
  }
  void read(Place& place, std::uint32_t event) {
    wait(event, place.writer);
    place.readers.push_back(event);
  }
  void write(Place& place, std::uint32_t event) {
    wait(event, place.writer);
    for (const std::uint32_t reader : place.readers) {
      wait(event, reader);
    }
    place.readers.clear();
    place.writer = event;
  }

  std::vector<Place> places_;
  std::vector<Edge> list_;
};

}  // namespace

Dependencies dependencies(const Schedule& schedule, Aliasing aliasing) {
  Edges edges(schedule.ranks);
  {
    const Grouped<Access> accesses = Accesses(schedule, aliasing).by_chunk();
    for (std::size_t chunk = 0; chunk < accesses.groups(); ++chunk) {
      edges.add_chunk(accesses.of(chunk));
    }
  }
  Grouped<std::uint32_t> by_event(2 * schedule.moves.size(), [&edges](const auto& visit) {
    for (const auto& [event, on] : edges.list()) {
      visit(event, on);
    }
  });
  Dependencies result;
  result.first.reserve(by_event.groups() + 1);
  result.events.reserve(edges.list().size());
  result.first.push_back(0);
  for (std::size_t event = 0; event < by_event.groups(); ++event) {
    const std::span<std::uint32_t> on = by_event.of(event);
    std::sort(on.begin(), on.end());
    std::unique_copy(on.begin(), on.end(), std::back_inserter(result.events));
    result.first.push_back(result.events.size());
  }
  return result;
}

}  // namespace unisono
