#include "executors/buffers.h"

namespace unisono::executors {
namespace {

constexpr std::string_view kLetters = "ios";

// Returns the number of chunks that a rank has of a vector of `chunks`, held as `holding`.
int held(Holding holding, const Schedule& shape, int rank) {
  switch (holding) {
    case Holding::whole:
      return shape.chunks;
    case Holding::whole_at_root:
      return rank == shape.root ? shape.chunks : 0;
    case Holding::part:
    case Holding::pairs:
      return shape.chunks / shape.ranks;
    case Holding::nothing:
      break;
  }
  return 0;
}

}  // namespace

int input_offset(const Schedule& shape, int rank, int chunk) {
  const Holding holding = traits_of(shape.collective).input;
  const bool is_cut = holding == Holding::part || holding == Holding::pairs;
  return is_cut ? chunk - rank * (shape.chunks / shape.ranks) : chunk;
}

int output_offset(const Schedule& shape, int rank, int chunk) {
  const Holding holding = traits_of(shape.collective).output;
  if (holding == Holding::part) {
    return chunk - rank * (shape.chunks / shape.ranks);
  }
  if (holding == Holding::pairs) {
    const int each = shape.chunks / (shape.ranks * shape.ranks);
    return chunk / (shape.ranks * each) * each + chunk % each;
  }
  return chunk;
}

int input_chunks(const Schedule& shape, int rank) {
  return held(traits_of(shape.collective).input, shape, rank);
}

int output_chunks(const Schedule& shape, int rank) {
  return held(traits_of(shape.collective).output, shape, rank);
}

std::string_view letter_of(Buffer buffer) {
  return kLetters.substr(static_cast<std::size_t>(buffer), 1);
}

std::optional<Buffer> buffer_called(std::string_view letter) {
  const std::size_t found = letter.size() == 1 ? kLetters.find(letter) : std::string_view::npos;
  return found == std::string_view::npos ? std::nullopt : std::optional(static_cast<Buffer>(found));
}

std::string algorithm_in(const std::string& name, Collective collective) {
  const std::string prefix = std::string(to_string(collective)) + "_";
  return name.substr(name.starts_with(prefix) ? prefix.size() : 0);
}

}  // namespace unisono::executors
