#include "expected.h"

#include <stdexcept>

namespace unisono::executors::testing {
namespace {

std::uint64_t sum(const Call& call, int index) {
  std::uint64_t value = 0;
  for (int rank = 0; rank < call.ranks; ++rank) {
    value += contribution(call.launch, rank, index);
  }
  return value;
}

}  // namespace

std::uint64_t contribution(int launch, int rank, int index) {
  std::uint64_t value = (static_cast<std::uint64_t>(rank) + 1) * 0x9E3779B97F4A7C15ULL;
  value ^= (static_cast<std::uint64_t>(index) + 1) * 0xC2B2AE3D27D4EB4FULL;
  value ^= (static_cast<std::uint64_t>(launch) + 1) * 0x165667B19E3779F9ULL;
  return value * (value >> 32 | 1);
}

bool has_input(const Call& call, int rank) {
  return call.collective != Collective::broadcast || rank == call.root;
}

std::optional<std::uint64_t> expected(const Call& call, int rank, int index) {
  switch (call.collective) {
    case Collective::all_reduce:
      return sum(call, index);
    case Collective::broadcast:
      return contribution(call.launch, call.root, index);
    case Collective::all_gather:
      return contribution(call.launch, index / call.part, index % call.part);
    case Collective::all_to_all:
      return contribution(call.launch, index / call.part, rank * call.part + index % call.part);
    case Collective::reduce:
      return rank == call.root ? std::optional(sum(call, index)) : std::nullopt;
    case Collective::reduce_scatter:
      return index < call.part ? std::optional(sum(call, rank * call.part + index)) : std::nullopt;
    default:
      throw std::logic_error("no program of another executor has this collective");
  }
}

}  // namespace unisono::executors::testing
