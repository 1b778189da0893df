// Parses the output of collective benchmarks: nccl-tests and its relatives (rccl-tests,
// mscclpp-test), also as JSON (-J); OSU micro-benchmarks; UCC's perftest; the oneCCL benchmark and
// the Intel MPI benchmarks.
//
//   # Collective test starting: all_reduce_perf
//   #  Rank  0 Group  0 Pid  1 on  host device  0 [0x00] NVIDIA H100 80GB HBM3
//   ...
//   #       size         count      type   redop    root     time   algbw   busbw #wrong ...
//        1048576        262144     float     sum      -1    44.20   23.72   41.52      0 ...
//
// A file may contain several tests of several programs, and lines may begin with text of launchers
// (log_lines.h). The out-of-place time counts, or the in-place time if there is no other. The
// reader leaves out rows of other tests, rows of 0 bytes, and rows with wrong results or
// contradictions; the account lists their number. The number of ranks must agree with the
// bandwidths.
#pragma once

#include <string_view>

#include "base/parsed.h"
#include "network_model/logs/printed_table.h"

namespace unisono::network_model {

bool is_benchmark_log(std::string_view text);

// The machine of a row is its ranks' device, such as "NVIDIA H100 80GB HBM3 x 8". The position of a
// failure is "line 17".
Parsed<BenchmarkLog> parse_benchmark_log(std::string_view text, const LogQuestion& question);

}  // namespace unisono::network_model
