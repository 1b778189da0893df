#include "mscclpp/plan.h"

#include <algorithm>

namespace unisono::mscclpp {

bool overlap(const PlanPlace& one, const PlanPlace& other) {
  return one.gpu == other.gpu && one.buffer == other.buffer &&
         one.offset < other.offset + other.chunks && other.offset < one.offset + one.chunks;
}

Schedule shape_of(const ExecutionPlan& plan) {
  Schedule shape;
  shape.collective = plan.collective;
  // What is exported is called "<collective>_<algorithm>".
  const std::string prefix = std::string(to_string(plan.collective)) + "_";
  shape.algorithm = plan.name.substr(plan.name.starts_with(prefix) ? prefix.size() : 0);
  shape.ranks = static_cast<int>(plan.gpus.size());
  shape.root = plan.root;
  const std::array<int, 3>& chunks = plan.gpus.front().chunks;
  shape.chunks = std::max(chunks[0], chunks[1]);
  if (traits_of(plan.collective).input == Holding::pairs) {
    shape.chunks *= shape.ranks;
  }
  return shape;
}

int other_end(const ExecutionPlan& plan, int gpu, int channel) {
  const std::vector<int>& own = plan.gpus[static_cast<std::size_t>(gpu)].channels;
  const int peer = own[static_cast<std::size_t>(channel)];
  auto before = std::count(own.begin(), own.begin() + channel, peer);
  const std::vector<int>& others = plan.gpus[static_cast<std::size_t>(peer)].channels;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (others[i] == gpu && before-- == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::string_view word_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "allreduce";
    case Collective::all_gather:
      return "allgather";
    case Collective::reduce_scatter:
      return "reducescatter";
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

}  // namespace unisono::mscclpp
