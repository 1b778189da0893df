#include "msccl/program.h"

namespace unisono::msccl {

Schedule shape_of(const MscclProgram& program) {
  Schedule shape;
  shape.collective = program.collective;
  shape.algorithm = executors::algorithm_in(program.name, program.collective);
  shape.ranks = static_cast<int>(program.gpus.size());
  shape.root = program.root;
  shape.chunks = program.chunks_per_loop;
  if (traits_of(program.collective).input == Holding::pairs) {
    shape.chunks *= shape.ranks;  // NCCL counts what one rank sends
  }
  return shape;
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
