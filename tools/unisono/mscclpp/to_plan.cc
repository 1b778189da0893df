#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "executors/contents.h"
#include "msccl/export.h"
#include "mscclpp/blocks.h"
#include "mscclpp/export.h"
#include "mscclpp/messages.h"
#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::mscclpp {
namespace {

using msccl::MscclProgram;
using msccl::Step;
using msccl::StepType;

// What a block does, with the semaphores of one GPU around it.
struct Task {
  WaitingStep action = {};
  bool is_grant = false;  // says only that a place is free
  std::size_t message = 0;
  std::vector<int> acquires = {};
  std::vector<int> releases = {};
};

class GpuWriter {
 public:
  GpuWriter(const MscclProgram& program, const Messages& messages,
            const executors::BufferContents& memory, int gpu, PlanGpu& written)
      : blocks_(program.gpus[static_cast<std::size_t>(gpu)].blocks),
        messages_(messages),
        memory_(memory),
        gpu_(gpu),
        written_(written) {}

  void run() {
    for (const msccl::ThreadBlock& block : blocks_) {
      const std::vector<Task>& tasks = tasks_.emplace_back(tasks_of(block));
      std::map<int, std::size_t>& indexes = task_of_step_.emplace_back();
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (!tasks[i].is_grant) {
          indexes[tasks[i].action.step] = i;
        }
      }
    }
    connect();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      ThreadBlockWriter writer;
      write(blocks_[i], tasks_[i], writer);
      for (ThreadBlock& piece : std::move(writer).finish(written_.semaphores)) {
        written_.blocks.push_back(std::move(piece));
      }
    }
    if (written_.blocks.empty()) {
      written_.blocks.push_back({{.type = OperationType::nop}});  // a kernel has a block
    }
  }

 private:
  const std::vector<PutMessage>& lane(const msccl::ThreadBlock& block) const {
    return messages_.at(block.send >= 0 ? std::pair{gpu_, block.send}
                                        : std::pair{block.receive, gpu_});
  }

  // What is granted in a step of the schedule is granted before anything of the step is awaited.
  std::vector<Task> tasks_of(const msccl::ThreadBlock& block) const {
    std::vector<Task> tasks;
    std::size_t group = 0;  // where the tasks of this step of the schedule begin
    int schedule_step = -1;
    std::size_t message = 0;
    for (WaitingStep& action : actions_of(block)) {
      const Step& step = block.steps[static_cast<std::size_t>(action.step)];
      if (step.schedule_step != schedule_step) {
        schedule_step = step.schedule_step;
        group = tasks.size();
      }
      if (block.receive >= 0 && lane(block)[message].landing == Landing::granted) {
        Task grant{.action = {.step = action.step, .waits = std::move(action.waits)},
                   .is_grant = true};
        action.waits.clear();
        tasks.insert(tasks.begin() + static_cast<std::ptrdiff_t>(group++), std::move(grant));
      }
      tasks.push_back({.action = std::move(action), .message = message++});
    }
    return tasks;
  }

  // A semaphore for each two blocks of which one waits for the other. It counts the steps that
  // are awaited; who has waited for a later step need not wait for an earlier one.
  void connect() {
    std::map<std::pair<int, int>, int> semaphores;  // of the block that releases, and the other
    for (std::size_t block = 0; block < tasks_.size(); ++block) {
      std::map<int, int> acquired;  // of each block: the last step
      for (Task& task : tasks_[block]) {
        for (const auto& [on_block, on_step] : task.action.waits) {
          const auto [last, is_first] = acquired.try_emplace(on_block, -1);
          if (on_step <= last->second) {
            continue;
          }
          last->second = on_step;
          const auto [semaphore, is_new] =
              semaphores.try_emplace({on_block, static_cast<int>(block)}, 0);
          if (is_new) {
            semaphore->second = static_cast<int>(written_.semaphores.size());
            written_.semaphores.push_back(0);
          }
          task.acquires.push_back(semaphore->second);
          task_of(on_block, on_step).releases.push_back(semaphore->second);
        }
      }
    }
  }
  Task& task_of(int block, int step) {
    const auto at = static_cast<std::size_t>(block);
    return tasks_[at][task_of_step_[at].at(step)];
  }

  void write(const msccl::ThreadBlock& block, const std::vector<Task>& tasks,
             ThreadBlockWriter& writer) {
    if (tasks.empty()) {
      return;
    }
    const int channel = channel_of(block);
    if (block.receive >= 0) {
      writer.signal(channel);  // this GPU has begun
    } else if (block.send >= 0) {
      writer.wait(channel);
    }
    for (const Task& task : tasks) {
      for (const int semaphore : task.acquires) {
        writer.acquire(semaphore);
      }
      const Step& step = block.steps[static_cast<std::size_t>(task.action.step)];
      if (task.is_grant) {
        writer.signal(channel);
      } else if (block.send >= 0) {
        send(step, lane(block)[task.message], channel, writer);
      } else if (block.receive >= 0) {
        receive(step, lane(block)[task.message], channel, writer);
      } else {
        stay(step, writer);
      }
      for (const int semaphore : task.releases) {
        writer.release(semaphore);
      }
    }
  }

  // Both ends list the channels of two GPUs in the order of the lanes: first the one that leaves
  // the GPU with the smaller number.
  int channel_of(const msccl::ThreadBlock& block) const {
    const int peer = block.send >= 0 ? block.send : block.receive;
    if (peer < 0) {
      return -1;
    }
    const bool is_upward = (block.send >= 0) == (gpu_ < peer);
    const bool has_upward = messages_.contains({std::min(gpu_, peer), std::max(gpu_, peer)});
    const auto first = std::find(written_.channels.begin(), written_.channels.end(), peer);
    return static_cast<int>(first - written_.channels.begin()) + (!is_upward && has_upward ? 1 : 0);
  }

  PlanPlace own(const executors::BufferPlace& place, int chunks) const {
    return {.gpu = gpu_, .buffer = place.buffer, .offset = place.offset, .chunks = chunks};
  }

  void send(const Step& step, const PutMessage& message, int channel,
            ThreadBlockWriter& writer) const {
    if (message.landing == Landing::granted) {
      writer.wait(channel);
    }
    writer.append({.type = OperationType::put,
                   .sources = {own(step.source, step.chunks)},
                   .targets = {message.place}});
    writer.signal(channel);
  }

  void receive(const Step& step, const PutMessage& message, int channel,
               ThreadBlockWriter& writer) const {
    writer.wait(channel);
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
    writer.append(std::move(operation));
  }

  void stay(const Step& step, ThreadBlockWriter& writer) const {
    if (memory_.cell(gpu_, step.source) == memory_.cell(gpu_, step.target)) {
      return;  // in place, the input is where the output is to be
    }
    const PlanPlace source = own(step.source, step.chunks);
    const PlanPlace target = own(step.target, step.chunks);
    if (step.type == StepType::copy) {
      writer.append({.type = OperationType::copy, .sources = {source}, .targets = {target}});
    } else {
      writer.append(
          {.type = OperationType::reduce, .sources = {target, source}, .targets = {target}});
    }
  }

  const std::vector<msccl::ThreadBlock>& blocks_;
  const Messages& messages_;
  const executors::BufferContents& memory_;
  int gpu_;
  PlanGpu& written_;
  std::vector<std::vector<Task>> tasks_;  // of each block
  std::vector<std::map<int, std::size_t>> task_of_step_;
};

// The kernel counts bytes within a buffer in 32 bits.
std::uint64_t most_bytes_of(const ExecutionPlan& plan) {
  std::uint64_t most_chunks = 1;
  for (const PlanGpu& gpu : plan.gpus) {
    for (const int chunks : gpu.chunks) {
      most_chunks = std::max(most_chunks, static_cast<std::uint64_t>(chunks));
    }
  }
  const auto alignment = static_cast<std::uint64_t>(plan.alignment);
  const std::uint64_t chunk =
      std::numeric_limits<std::uint32_t>::max() / most_chunks / alignment * alignment;
  // A message is the input, and of an all_gather the output.
  const bool is_output = plan.collective == Collective::all_gather;
  return chunk * static_cast<std::uint64_t>(plan.gpus.front().chunks.at(is_output ? 1 : 0));
}

void check_that_it_can_be_said(const Schedule& schedule, Aliasing aliasing) {
  if (word_of(schedule.collective).empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("plans of MSCCL++ have no word for {}\nthey say all_reduce, "
                            "all_gather, reduce_scatter, all_to_all, broadcast and reduce",
                            to_string(schedule.collective)));
  }
  if (aliasing == Aliasing::in_place && !verify_in_place(schedule).empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("in place, this schedule of {} would overwrite what it still needs\n"
                            "leave --in-place out",
                            to_string(schedule.collective)));
  }
}

// The executor keeps what it has set up for a plan under its name.
std::string name_of(const Schedule& schedule, Aliasing aliasing) {
  return fmt::format("{}_{}{}{}", to_string(schedule.collective), schedule.algorithm,
                     is_rooted(schedule.collective) ? fmt::format("_root{}", schedule.root) : "",
                     aliasing == Aliasing::in_place ? "_in_place" : "");
}

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
    GpuWriter(program, messages, memory, static_cast<int>(i), gpu).run();
  }
  plan.most_bytes = most_bytes_of(plan);
  return plan;
}

}  // namespace unisono::mscclpp
