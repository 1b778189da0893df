#include "executors/contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace unisono::executors {

std::string to_text(const Sum& sum) {
  std::vector<std::string> ranks;
  for (std::size_t rank = 0; rank < sum.counts.size(); ++rank) {
    if (sum.counts[rank] == 1) {
      ranks.push_back(std::to_string(rank));
    } else if (sum.counts[rank] > 1) {
      ranks.push_back(fmt::format("{} (more than once)", rank));
    }
  }
  return fmt::format("chunk {} of rank{} {}", sum.chunk, ranks.size() == 1 ? "" : "s",
                     fmt::join(ranks, ", "));
}

// Limits the count: a program can add a value any number of times, and an int could wrap around to
// a value that looks right.
Value sum_of(const Sum& one, const Sum& other) {
  Sum sum = one;
  std::transform(sum.counts.begin(), sum.counts.end(), other.counts.begin(), sum.counts.begin(),
                 [](int count, int more) { return std::min(count + more, 2); });
  return std::make_shared<const Sum>(std::move(sum));
}

BufferContents::BufferContents(const Schedule& shape, bool is_in_place)
    : shape_(shape), is_in_place_(is_in_place) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      if (has_input(shape, rank, chunk)) {
        Sum own{.chunk = chunk, .counts = std::vector<int>(static_cast<std::size_t>(shape.ranks))};
        own.counts[static_cast<std::size_t>(rank)] = 1;
        const BufferPlace place{.buffer = Buffer::input,
                                .offset = input_offset(shape, rank, chunk)};
        set(cell(rank, place), std::make_shared<const Sum>(std::move(own)));
      }
    }
  }
}

std::uint64_t BufferContents::cell(int rank, BufferPlace place) const {
  if (is_in_place_ && place.buffer != Buffer::scratch) {
    const int input = input_chunks(shape_, rank);
    const int output = output_chunks(shape_, rank);
    const bool is_input = place.buffer == Buffer::input;
    // The smaller buffer is the rank's part of the larger one.
    if (is_input && input > 0 && input < output) {
      place.offset += rank * input;
    } else if (!is_input && output > 0 && output < input) {
      place.offset += rank * output;
    }
    place.buffer = Buffer::output;
  }
  return (static_cast<std::uint64_t>(rank) * 3 + static_cast<std::uint64_t>(place.buffer)) << 32 |
         static_cast<std::uint32_t>(place.offset);
}

Value BufferContents::at(std::uint64_t cell) const {
  const auto found = values_.find(cell);
  return found == values_.end() ? nullptr : found->second;
}

namespace {

void check_output(const BufferContents& memory, const Schedule& shape, int rank, int chunk,
                  Flaws& flaws) {
  const bool adds = reduces(shape.collective);
  const BufferPlace place{.buffer = Buffer::output, .offset = output_offset(shape, rank, chunk)};
  const Value value = memory.at(memory.cell(rank, place));
  bool is_right = value != nullptr && value->chunk == chunk;
  for (int from = 0; is_right && from < shape.ranks; ++from) {
    const bool expected =
        adds ? contributes(shape.collective, from, rank) : has_input(shape, from, chunk);
    is_right = value->counts[static_cast<std::size_t>(from)] == (expected ? 1 : 0);
  }
  if (!is_right) {
    flaws.add(
        {.text = fmt::format("GPU {} ends with {} in output chunk {}, {}", rank,
                             value == nullptr ? "nothing" : to_text(*value), place.offset,
                             adds ? fmt::format("instead of chunk {} of every rank once", chunk)
                                  : fmt::format("instead of chunk {}", chunk))});
  }
}

}  // namespace

void add_wrong_outputs(const BufferContents& memory, const Schedule& shape, Flaws& flaws) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (int chunk = 0; chunk < shape.chunks && !flaws.is_full(); ++chunk) {
      if (needs_output(shape, rank, chunk)) {
        check_output(memory, shape, rank, chunk, flaws);
      }
    }
  }
}

}  // namespace unisono::executors
