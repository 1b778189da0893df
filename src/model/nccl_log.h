// What nccl-tests prints, read as it is.
//
//   # Collective test starting: all_reduce_perf
//   #  Rank  0 Group  0 Pid  1 on  host device  0 [0x00] NVIDIA H100 80GB HBM3
//   ...
//   #       size         count      type   redop    root     time   algbw   busbw #wrong ...
//        1048576        262144     float     sum      -1    44.20   23.72   41.52      0 ...
//
// The out-of-place time counts, or the in-place one where there is no other. Several logs may
// follow each other in one file. Older versions do not say which collective was tested.
#pragma once

#include <optional>
#include <string_view>

#include "base/parsed.h"
#include "model/table.h"

namespace unisono::model {

// By its words: the header of the table.
bool is_nccl_log(std::string_view text);

// `collective`: of logs that do not say it. The machine is the device that ranks have, such as
// "NVIDIA H100 80GB HBM3 x 8". The position of a failure is "line 17".
Parsed<Table> parse_nccl_log(std::string_view text, std::optional<Collective> collective);

}  // namespace unisono::model
