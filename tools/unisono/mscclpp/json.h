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
// Numbers are local: an operation's channel and buffer numbers index the lists of its thread block,
// and a thread block's numbers index the lists of its GPU.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "mscclpp/plan.h"

namespace unisono::mscclpp {

// Returns true for an execution plan, false for a schedule of unisono.
bool is_plan(std::string_view text);

// GPUs, chunks, channels and semaphores of the result are in range, and its buffers are those of
// the collective. Fails for features that unisono does not support, naming them: packets (LL),
// port and switch channels, pipelines, groups of thread blocks.
Parsed<ExecutionPlan> parse_plan(std::string_view text);

// Writes only the keys that the executor reads.
std::string to_json(const ExecutionPlan& plan);

}  // namespace unisono::mscclpp
