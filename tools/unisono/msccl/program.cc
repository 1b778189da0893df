#include "msccl/program.h"

#include <algorithm>

namespace unisono::msccl {
namespace {

// How many chunks a rank has of a vector of `chunks`, held as `holding`.
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

Schedule shape_of(const MscclProgram& program) {
  Schedule shape;
  shape.collective = program.collective;
  // What is exported is called "<collective>_<algorithm>".
  const std::string prefix = std::string(to_string(program.collective)) + "_";
  shape.algorithm = program.name.substr(program.name.starts_with(prefix) ? prefix.size() : 0);
  shape.ranks = static_cast<int>(program.gpus.size());
  shape.root = program.root;
  shape.chunks = program.chunks_per_loop;
  if (traits_of(program.collective).input == Holding::pairs) {
    shape.chunks *= shape.ranks;  // NCCL counts what one rank sends
  }
  return shape;
}

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

std::string_view word_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "allreduce";
    case Collective::all_gather:
      return "allgather";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_to_all:
      return "alltoall";
    case Collective::broadcast:
      return "broadcast";
    case Collective::reduce:
      return "reduce";
    default:
      return {};
  }
}

}  // namespace unisono::msccl
