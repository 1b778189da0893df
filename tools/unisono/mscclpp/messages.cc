#include "mscclpp/messages.h"

#include <algorithm>
#include <unordered_map>

#include "executors/contents.h"

namespace unisono::mscclpp {
namespace {

using executors::BufferPlace;
using msccl::MscclProgram;
using msccl::Step;
using msccl::StepType;

// The executor reaches a buffer of another GPU with the offset that its own buffer of that kind has
// in its allocation. In place, the outputs of a reduce_scatter have different ones.
bool may_be_written(const MscclProgram& program, const Step& step) {
  return !(program.in_place && program.collective == Collective::reduce_scatter &&
           step.target.buffer == Buffer::output);
}

class Lander {
 public:
  Lander(const MscclProgram& program, std::vector<int>& scratch)
      : program_(program),
        scratch_(scratch),
        shape_(shape_of(program)),
        memory_(shape_, program.in_place) {}

  Messages run() {
    Messages messages;
    for (std::size_t gpu = 0; gpu < program_.gpus.size(); ++gpu) {
      for (const msccl::ThreadBlock& block : program_.gpus[gpu].blocks) {
        if (block.receive >= 0) {
          const int own = static_cast<int>(gpu);
          messages[{block.receive, own}] = of_block(own, block);
        }
      }
    }
    return messages;
  }

 private:
  std::vector<PutMessage> of_block(int gpu, const msccl::ThreadBlock& block) {
    std::vector<PutMessage> messages;
    touched_.clear();
    for (const WaitingStep& action : actions_of(block)) {
      const Step& step = block.steps[static_cast<std::size_t>(action.step)];
      messages.push_back(land(gpu, step, action));
      touch(gpu, step, step.target);
      if (traits_of(step.type).reads_source) {
        touch(gpu, step, step.source);
      }
    }
    return messages;
  }

  PutMessage land(int gpu, const Step& step, const WaitingStep& action) {
    const Landing landing = step.type == StepType::receive && may_be_written(program_, step)
                                ? landing_of(gpu, step, action)
                                : Landing::scratch;
    PutMessage message{.landing = landing,
                       .place = {.gpu = gpu,
                                 .buffer = step.target.buffer,
                                 .offset = step.target.offset,
                                 .chunks = step.chunks}};
    if (landing == Landing::scratch) {
      int& next = scratch_[static_cast<std::size_t>(gpu)];
      message.place.buffer = Buffer::scratch;
      message.place.offset = next;
      next += step.chunks;
    }
    return message;
  }

  // The predecessors belong to earlier steps, so waiting for them closes no cycle: in the order of
  // the schedule's steps, sends first, the receiver can signal just before the send.
  Landing landing_of(int gpu, const Step& step, const WaitingStep& action) const {
    Landing landing = Landing::free;
    const auto take = [&](int schedule_step) {
      if (landing != Landing::scratch) {
        landing = schedule_step < step.schedule_step ? Landing::granted : Landing::scratch;
      }
    };
    const auto& blocks = program_.gpus[static_cast<std::size_t>(gpu)].blocks;
    for (const auto& [on_block, on_step] : action.waits) {
      take(blocks[static_cast<std::size_t>(on_block)]
               .steps[static_cast<std::size_t>(on_step)]
               .schedule_step);
    }
    for (int i = 0; i < step.chunks; ++i) {
      const auto found = touched_.find(cell(gpu, step.target, i));
      if (found != touched_.end()) {
        take(found->second);
      }
    }
    return landing;
  }

  std::uint64_t cell(int gpu, BufferPlace place, int i) const {
    place.offset += i;
    return memory_.cell(gpu, place);
  }
  void touch(int gpu, const Step& step, const BufferPlace& place) {
    for (int i = 0; i < step.chunks; ++i) {
      touched_[cell(gpu, place, i)] = step.schedule_step;
    }
  }

  const MscclProgram& program_;
  std::vector<int>& scratch_;
  Schedule shape_;
  executors::BufferContents memory_;
  std::unordered_map<std::uint64_t, int> touched_;  // by the block: the last step that did
};

}  // namespace

std::vector<WaitingStep> actions_of(const msccl::ThreadBlock& block) {
  std::vector<WaitingStep> actions;
  WaitingStep next;
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    const Step& step = block.steps[i];
    if (step.depends_on_block >= 0) {
      next.waits.emplace_back(step.depends_on_block, step.depends_on_step);
    }
    if (step.type != StepType::nop) {
      next.step = static_cast<int>(i);
      actions.push_back(std::move(next));
      next = {};
    }
  }
  return actions;
}

Messages find_messages(const MscclProgram& program, std::vector<int>& scratch) {
  return Lander(program, scratch).run();
}

const std::vector<PutMessage>& lane_of(const Messages& messages, int gpu,
                                       const msccl::ThreadBlock& block) {
  static const std::vector<PutMessage> kNone;
  if (block.send < 0 && block.receive < 0) {
    return kNone;
  }
  return messages.at(block.send >= 0 ? std::pair{gpu, block.send} : std::pair{block.receive, gpu});
}

}  // namespace unisono::mscclpp
