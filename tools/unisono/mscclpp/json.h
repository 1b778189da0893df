// Execution plans of MSCCL++ as JSON, the form that its executor reads:
//
//   {"name": "all_gather_ring", "collective": "allgather", "protocol": "Simple", "inplace": false,
//    "reuse_resources": false, "gpus": [
//      {"id": 0, "input_chunks": 1, "output_chunks": 2, "scratch_chunks": 0, "threadblocks": [
//         {"id": 0, "ops": [{"name": "wait", "channel_type": "memory", "channel_ids": [0]}, ...],
//          "channels": [{"channel_type": "memory", "channel_ids": [0]}],
//          "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}]}],
//       "channels": [{"channel_type": "memory", "connected_to": [1]}],
//       "remote_buffers": [{"rank": 1, "type": "o", "access_channel_types": ["memory"]}],
//       "semaphores": [{"init_value": 0}]}, ...],
//    "num_threads_per_block": 1024, "use_double_scratch_buffer": false, "buffer_alignment": 16,
//    "min_message_size": 0, "max_message_size": 8589934560}
//
// What an operation calls channel 0 or buffer 0 is the first one of its thread block's lists; what
// a thread block calls so, the first one of its GPU's.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "mscclpp/plan.h"

namespace unisono::mscclpp {

// Is it one of these, and not a schedule of unisono?
bool is_plan(std::string_view text);

// GPUs, chunks, channels and semaphores of the result are in range, and its buffers are those of
// the collective. What a plan may say and this does not read is refused by its name: packets (LL),
// channels of ports and switches, pipelines, groups of thread blocks.
Parsed<ExecutionPlan> parse_plan(std::string_view text);

// Only what the executor reads.
std::string to_json(const ExecutionPlan& plan);

}  // namespace unisono::mscclpp
