#include "show/provenance.h"

#include <algorithm>
#include <unordered_map>

#include "base/as_size.h"

namespace unisono::cli {
namespace {

// Adds counts, up to 2, which stands for any number above one.
std::uint8_t add(std::uint8_t a, std::uint8_t b) {
  return static_cast<std::uint8_t>(std::min(2, a + b));
}

}  // namespace

int contributors(const Schedule& schedule) {
  return reduces(schedule.collective) || !moves_data(schedule.collective) ? schedule.ranks : 1;
}

int origin_of(const Schedule& schedule, int chunk) {
  const Holding input = traits_of(schedule.collective).input;
  const bool by_rank = input == Holding::part || input == Holding::pairs;
  return by_rank ? chunk / std::max(1, schedule.chunks / std::max(1, schedule.ranks))
                 : schedule.root;
}

std::uint64_t Provenance::cost_bytes(const Schedule& schedule) {
  return std::uint64_t{3} * as_size(schedule.ranks) * as_size(schedule.chunks) *
         (as_size(contributors(schedule)) + 1);
}

Provenance::Provenance(const Schedule& schedule)
    : schedule_(&schedule), width_(contributors(schedule)) {
  const std::size_t places = as_size(schedule.ranks) * as_size(schedule.chunks);
  counts_.resize(places * 3 * as_size(width_));
  written_.resize(places * 3);
  last_written_.resize(places, Buffer::input);
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      if (has_input(schedule, rank, chunk)) {
        const std::size_t base = cell(rank, Buffer::input, chunk) * as_size(width_);
        counts_[base + (width_ == 1 ? 0 : as_size(rank))] = 1;
      }
    }
  }
}

std::size_t Provenance::cell(int rank, Buffer buffer, int chunk) const {
  const std::size_t place = as_size(rank) * as_size(schedule_->chunks) + as_size(chunk);
  return place * 3 + static_cast<std::size_t>(buffer);
}

std::span<const std::uint8_t> Provenance::at(std::size_t cell) const {
  return std::span(counts_).subspan(cell * as_size(width_), as_size(width_));
}

std::span<const std::uint8_t> Provenance::read(int rank, Buffer buffer, int chunk) const {
  const std::size_t own = cell(rank, buffer, chunk);
  return at(written_[own] ? own : cell(rank, Buffer::input, chunk));
}

std::span<const Move> Provenance::moves_of(const Schedule& schedule, int step) {
  const auto first = std::lower_bound(schedule.moves.begin(), schedule.moves.end(), step,
                                      [](const Move& move, int s) { return move.step < s; });
  const auto last = std::upper_bound(first, schedule.moves.end(), step,
                                     [](int s, const Move& move) { return s < move.step; });
  return {first, last};
}

void Provenance::advance() {
  struct Write {
    std::size_t cell;
    std::size_t place;
    Buffer buffer;
    Counts value;
  };
  std::vector<Write> writes;
  std::unordered_map<std::size_t, std::size_t> newest;  // cell -> its last write
  for (const Move& move : moves_of(*schedule_, step_)) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      const auto source = read(move.from, move.source, chunk);
      Write write{.cell = cell(move.to, move.target, chunk),
                  .place = as_size(move.to) * as_size(schedule_->chunks) + as_size(chunk),
                  .buffer = move.target,
                  .value = Counts(source.begin(), source.end())};
      if (move.combine == Combine::reduce) {
        // Several moves may reduce into one cell in one step: each adds to the previous ones.
        const auto earlier = newest.find(write.cell);
        const auto target = earlier != newest.end()
                                ? std::span<const std::uint8_t>(writes[earlier->second].value)
                                : read(move.to, move.target, chunk);
        std::transform(write.value.begin(), write.value.end(), target.begin(), write.value.begin(),
                       add);
      }
      newest[write.cell] = writes.size();
      writes.push_back(std::move(write));
    }
  }
  for (const Write& write : writes) {
    std::copy(write.value.begin(), write.value.end(),
              counts_.begin() + static_cast<std::ptrdiff_t>(write.cell * as_size(width_)));
    written_[write.cell] = true;
    last_written_[write.place] = write.buffer;
  }
  ++step_;
}

std::span<const std::uint8_t> Provenance::shown(int rank, int chunk) const {
  const std::size_t place = as_size(rank) * as_size(schedule_->chunks) + as_size(chunk);
  return at(cell(rank, last_written_[place], chunk));
}

bool Provenance::is_whole(int rank, int chunk) const {
  if (!needs_output(*schedule_, rank, chunk)) {
    return false;
  }
  const auto counts = read(rank, Buffer::output, chunk);
  for (std::size_t from = 0; from < counts.size(); ++from) {
    if (counts[from] !=
        (contributes(schedule_->collective, static_cast<int>(from), rank) ? 1 : 0)) {
      return false;
    }
  }
  return true;
}

std::int64_t Provenance::needed() const {
  std::int64_t total = 0;
  for (int rank = 0; rank < schedule_->ranks; ++rank) {
    for (int chunk = 0; chunk < schedule_->chunks; ++chunk) {
      total += needs_output(*schedule_, rank, chunk) ? 1 : 0;
    }
  }
  return total;
}

std::int64_t Provenance::whole() const {
  std::int64_t total = 0;
  for (int rank = 0; rank < schedule_->ranks; ++rank) {
    for (int chunk = 0; chunk < schedule_->chunks; ++chunk) {
      total += is_whole(rank, chunk) ? 1 : 0;
    }
  }
  return total;
}

}  // namespace unisono::cli
