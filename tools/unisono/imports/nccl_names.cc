#include "imports/nccl_names.h"

#include <algorithm>
#include <array>

namespace unisono::cli {

const NcclCollective* collective_named_by_nccl(std::string_view name) {
  static constexpr std::array<NcclCollective, 9> kNcclCollectives = {
      {{"AllReduce", "all_reduce", false},
       {"Broadcast", "broadcast", false},
       {"Reduce", "reduce", false},
       {"AllGather", "all_gather", true},
       {"ReduceScatter", "reduce_scatter", true},
       {"AlltoAll", "all_to_all", true},
       {"AllToAll", "all_to_all", true},
       {"Gather", "gather", true},
       {"Scatter", "scatter", true}}};
  const auto* const found = std::ranges::find(kNcclCollectives, name, &NcclCollective::nccl);
  return found == kNcclCollectives.end() ? nullptr : found;
}

}  // namespace unisono::cli
