#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "executors/contents.h"
#include "msccl/export.h"
#include "mscclpp/blocks.h"
#include "mscclpp/export.h"
#include "mscclpp/limits.h"
#include "mscclpp/messages.h"
#include "mscclpp/tasks.h"
#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::mscclpp {
namespace {

using msccl::MscclProgram;
using msccl::Step;
using msccl::StepType;

// A thread block of a program, and what it becomes.
class BlockOfPlan {
 public:
  BlockOfPlan(const msccl::ThreadBlock& block, int gpu, int channel,
              const std::vector<PutMessage>& lane, const executors::BufferContents& memory)
      : block_(block), gpu_(gpu), channel_(channel), lane_(lane), memory_(memory) {}

  // Its pieces.
  std::vector<ThreadBlock> write(const std::vector<BlockTask>& tasks,
                                 std::vector<int>& semaphores) {
    if (block_.receive >= 0 && !tasks.empty()) {
      writer_.signal(channel_);  // this GPU has begun
    } else if (block_.send >= 0 && !tasks.empty()) {
      writer_.wait(channel_);
    }
    for (const BlockTask& task : tasks) {
      for (const int semaphore : task.acquires) {
        writer_.acquire(semaphore);
      }
      write(task);
      for (const int semaphore : task.releases) {
        writer_.release(semaphore);
      }
    }
    return std::move(writer_).finish(semaphores);
  }

 private:
  void write(const BlockTask& task) {
    const Step& step = block_.steps[static_cast<std::size_t>(task.action.step)];
    if (task.is_grant) {
      writer_.signal(channel_);
    } else if (block_.send >= 0) {
      send(step, lane_[task.message]);
    } else if (block_.receive >= 0) {
      receive(step, lane_[task.message]);
    } else {
      stay(step);
    }
  }

  void send(const Step& step, const PutMessage& message) {
    if (message.landing == Landing::granted) {
      writer_.wait(channel_);
    }
    writer_.append({.type = OperationType::put,
                    .sources = {own(step.source, step.chunks)},
                    .targets = {message.place}});
    writer_.signal(channel_);
  }

  void receive(const Step& step, const PutMessage& message) {
    writer_.wait(channel_);
    if (message.landing != Landing::scratch) {
      return;
    }
    const bool adds = step.type == StepType::receive_reduce_copy;
    PlanOperation operation{.type = adds ? OperationType::reduce : OperationType::copy,
                            .targets = {own(step.target, step.chunks)}};
    if (adds) {
      operation.sources.push_back(own(step.source, step.chunks));
    }
    operation.sources.push_back(message.place);
    writer_.append(std::move(operation));
  }

  void stay(const Step& step) {
    if (memory_.cell(gpu_, step.source) == memory_.cell(gpu_, step.target)) {
      return;  // in place, the input is where the output is to be
    }
    const PlanPlace source = own(step.source, step.chunks);
    const PlanPlace target = own(step.target, step.chunks);
    if (step.type == StepType::copy) {
      writer_.append({.type = OperationType::copy, .sources = {source}, .targets = {target}});
    } else {
      writer_.append(
          {.type = OperationType::reduce, .sources = {target, source}, .targets = {target}});
    }
  }

  PlanPlace own(const executors::BufferPlace& place, int chunks) const {
    return {.gpu = gpu_, .buffer = place.buffer, .offset = place.offset, .chunks = chunks};
  }

  const msccl::ThreadBlock& block_;
  int gpu_;
  int channel_;
  const std::vector<PutMessage>& lane_;
  const executors::BufferContents& memory_;
  ThreadBlockWriter writer_;
};

// For each peer: the lane from the smaller of the two GPUs to the larger one, then that back.
std::vector<int> channels_of(int gpu, int gpus, const Messages& messages) {
  std::vector<int> peers;
  for (int peer = 0; peer < gpus; ++peer) {
    for (const std::pair<int, int>& lane : {std::pair{std::min(gpu, peer), std::max(gpu, peer)},
                                            std::pair{std::max(gpu, peer), std::min(gpu, peer)}}) {
      if (messages.contains(lane)) {
        peers.push_back(peer);
      }
    }
  }
  return peers;
}

// The channel of a block among them; -1 where it stays within the GPU.
int channel_of(const msccl::ThreadBlock& block, int gpu, const std::vector<int>& channels,
               const Messages& messages) {
  const int peer = block.send >= 0 ? block.send : block.receive;
  if (peer < 0) {
    return -1;
  }
  const bool is_upward = (block.send >= 0) == (gpu < peer);
  const bool has_upward = messages.contains({std::min(gpu, peer), std::max(gpu, peer)});
  const auto first = std::find(channels.begin(), channels.end(), peer);
  return static_cast<int>(first - channels.begin()) + (!is_upward && has_upward ? 1 : 0);
}

void write_blocks(const std::vector<msccl::ThreadBlock>& blocks, int gpu, const Messages& messages,
                  const executors::BufferContents& memory, PlanGpu& written) {
  const std::vector<std::vector<BlockTask>> tasks =
      tasks_of(blocks, gpu, messages, written.semaphores);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const int channel = channel_of(blocks[i], gpu, written.channels, messages);
    BlockOfPlan block(blocks[i], gpu, channel, lane_of(messages, gpu, blocks[i]), memory);
    for (ThreadBlock& piece : block.write(tasks[i], written.semaphores)) {
      written.blocks.push_back(std::move(piece));
    }
  }
  if (written.blocks.empty()) {
    written.blocks.push_back({{.type = OperationType::nop}});  // a kernel has a block
  }
}

void check_that_it_can_be_said(const Schedule& schedule, Aliasing aliasing) {
  if (word_of(schedule.collective).empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("MSCCL++'s plans do not support {}\nthey support all_reduce, "
                            "all_gather, reduce_scatter, all_to_all, broadcast and reduce",
                            to_string(schedule.collective)));
  }
  if (aliasing == Aliasing::in_place && !verify_in_place(schedule).empty()) {
    throw Error(ErrorCode::usage, fmt::format("in place, this schedule of {} would overwrite data "
                                              "that it still needs\nremove --in-place",
                                              to_string(schedule.collective)));
  }
}

// The executor keeps what it has set up for a plan under its name.
std::string name_of(const Schedule& schedule, Aliasing aliasing) {
  return fmt::format("{}_{}{}{}", to_string(schedule.collective), schedule.algorithm,
                     is_rooted(schedule.collective) ? fmt::format("_root{}", schedule.root) : "",
                     aliasing == Aliasing::in_place ? "_in_place" : "");
}

}  // namespace

ExecutionPlan to_plan(const Schedule& schedule, Aliasing aliasing) {
  check_that_it_can_be_said(schedule, aliasing);
  const MscclProgram program = msccl::to_program(schedule, aliasing);
  const executors::BufferContents memory(schedule, program.in_place);
  ExecutionPlan plan{.name = name_of(schedule, aliasing),
                     .collective = schedule.collective,
                     .root = schedule.root,
                     .in_place = program.in_place};
  std::vector<int> scratch;
  for (const msccl::Gpu& gpu : program.gpus) {
    scratch.push_back(gpu.chunks[2]);
  }
  const Messages messages = find_messages(program, scratch);
  for (std::size_t i = 0; i < program.gpus.size(); ++i) {
    PlanGpu& gpu = plan.gpus.emplace_back();
    gpu.chunks = program.gpus[i].chunks;
    gpu.chunks[2] = scratch[i];
    // The executor divides by both: a GPU without an input or an output has an unused one.
    for (int& chunks : std::span(gpu.chunks).first(2)) {
      chunks = chunks == 0 ? schedule.chunks : chunks;
    }
    gpu.channels = channels_of(static_cast<int>(i), schedule.ranks, messages);
    write_blocks(program.gpus[i].blocks, static_cast<int>(i), messages, memory, gpu);
  }
  plan.most_bytes = most_bytes_of(plan);
  return plan;
}

}  // namespace unisono::mscclpp
