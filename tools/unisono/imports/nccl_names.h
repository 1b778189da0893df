// Names that NCCL gives collectives, in its log, its profiler plugin and its RAS.
#pragma once

#include <string_view>

namespace unisono::cli {

struct NcclCollective {
  std::string_view nccl;     // "AllGather"
  const char* name;          // "all_gather"
  bool is_counted_per_rank;  // the count is the size of one rank's part
};

// Returns nullptr if unisono has no such collective.
const NcclCollective* collective_named_by_nccl(std::string_view name);

}  // namespace unisono::cli
