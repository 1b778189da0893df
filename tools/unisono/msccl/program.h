// A collective in the form of the MSCCL executors: the steps of each thread block of each GPU, in
// order.
//
// MSCCL (Cowan et al., "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023) runs
// such programs inside NCCL and RCCL. Data is named by its place in the buffers of NCCL
// (executors/buffers.h). Thread blocks run concurrently. A block sends to one GPU and receives from
// one GPU, over a channel. The data of a block arrives, in order, at the block of the other GPU
// that receives from this GPU on the same channel. If a step depends on a step of another block, it
// starts after that step has ended.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/collectives.h"
#include "executors/buffers.h"
#include "schedule/schedule.h"

namespace unisono::msccl {

enum class StepType : std::uint8_t {
  send,
  receive,
  receive_copy_send,         // rcs: receive into the target, and send it on
  receive_reduce_send,       // rrs: send the received data plus the source; store nothing
  receive_reduce_copy,       // rrc: store the received data plus the source in the target
  receive_reduce_copy_send,  // rrcs: both
  copy,                      // cpy: within the GPU
  reduce,                    // re: add the source to the target, within the GPU
  nop                        // waits for a step, and does nothing
};

struct StepTraits {
  StepType type;
  std::string_view word;  // its name in the XML
  bool receives;
  bool sends;
  bool reads_source;  // from its own GPU
  bool writes_target;
};

inline constexpr std::array<StepTraits, 9> kSteps = {
    {{StepType::send, "s", false, true, true, false},
     {StepType::receive, "r", true, false, false, true},
     {StepType::receive_copy_send, "rcs", true, true, false, true},
     {StepType::receive_reduce_send, "rrs", true, true, true, false},
     {StepType::receive_reduce_copy, "rrc", true, false, true, true},
     {StepType::receive_reduce_copy_send, "rrcs", true, true, true, true},
     {StepType::copy, "cpy", false, false, true, true},
     {StepType::reduce, "re", false, false, true, true},
     {StepType::nop, "nop", false, false, false, false}}};

constexpr const StepTraits& traits_of(StepType type) {
  return kSteps.at(static_cast<std::size_t>(type));
}

using executors::BufferPlace;

struct Step {
  StepType type = StepType::nop;
  BufferPlace source = {};
  BufferPlace target = {};
  int chunks = 1;
  int depends_on_block = -1;  // -1: on none
  int depends_on_step = -1;
  bool tells = false;  // other blocks may wait for it
  // The step of the schedule from which it was made; -1: before the first step. The XML does not
  // contain it.
  int schedule_step = -1;
};

struct ThreadBlock {
  int send = -1;     // the GPU that it sends to; -1: none
  int receive = -1;  // the GPU that it receives from
  int channel = 0;
  std::vector<Step> steps = {};
};

struct Gpu {
  std::array<int, 3> chunks = {0, 0, 0};  // of the input, the output and scratch
  std::vector<ThreadBlock> blocks = {};
};

struct MscclProgram {
  std::string name = {};
  std::string protocol = "Simple";
  Collective collective = Collective::all_reduce;
  int root = 0;
  int channels = 1;
  int chunks_per_loop = 1;  // the number of chunks of NCCL's count
  bool in_place = true;
  bool out_of_place = true;
  std::vector<Gpu> gpus = {};
};

// Returns a schedule without moves, with the program's collective, ranks and chunks: the required
// effect of the program.
Schedule shape_of(const MscclProgram& program);

// Returns a collective's name in these files; empty: the format does not support it.
std::string_view word_of(Collective collective);

}  // namespace unisono::msccl
