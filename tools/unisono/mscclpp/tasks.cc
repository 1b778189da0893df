#include "mscclpp/tasks.h"

#include <map>
#include <utility>

namespace unisono::mscclpp {
namespace {

// In each step of the schedule, all grants come before the first wait.
std::vector<BlockTask> tasks_of_block(const msccl::ThreadBlock& block,
                                      const std::vector<PutMessage>& lane) {
  std::vector<BlockTask> tasks;
  std::size_t group = 0;  // where the tasks of this step of the schedule begin
  int schedule_step = -1;
  std::size_t message = 0;
  for (WaitingStep& action : actions_of(block)) {
    const msccl::Step& step = block.steps[static_cast<std::size_t>(action.step)];
    if (step.schedule_step != schedule_step) {
      schedule_step = step.schedule_step;
      group = tasks.size();
    }
    if (block.receive >= 0 && lane[message].landing == Landing::granted) {
      BlockTask grant{.action = {.step = action.step, .waits = std::move(action.waits)},
                      .is_grant = true};
      action.waits.clear();
      tasks.insert(tasks.begin() + static_cast<std::ptrdiff_t>(group++), std::move(grant));
    }
    tasks.push_back({.action = std::move(action), .message = message++});
  }
  return tasks;
}

// The task that each step of a block became.
std::map<int, BlockTask*> by_step(std::vector<BlockTask>& tasks) {
  std::map<int, BlockTask*> found;
  for (BlockTask& task : tasks) {
    if (!task.is_grant) {
      found[task.action.step] = &task;
    }
  }
  return found;
}

// A semaphore for each two blocks of which one waits for the other. It counts the steps that are
// awaited; a block that has waited for a later step need not wait for an earlier step.
void connect(std::vector<std::vector<BlockTask>>& tasks, std::vector<int>& semaphores) {
  std::vector<std::map<int, BlockTask*>> task_of_step;
  for (std::vector<BlockTask>& of_block : tasks) {
    task_of_step.push_back(by_step(of_block));
  }
  std::map<std::pair<int, int>, int> between;  // the block that releases, and the other
  for (std::size_t block = 0; block < tasks.size(); ++block) {
    std::map<int, int> acquired;  // of each block: the last step
    for (BlockTask& task : tasks[block]) {
      for (const auto& [on_block, on_step] : task.action.waits) {
        const auto [last, is_first] = acquired.try_emplace(on_block, -1);
        if (on_step <= last->second) {
          continue;
        }
        last->second = on_step;
        const auto [semaphore, is_new] =
            between.try_emplace({on_block, static_cast<int>(block)}, semaphores.size());
        if (is_new) {
          semaphores.push_back(0);
        }
        task.acquires.push_back(semaphore->second);
        task_of_step[static_cast<std::size_t>(on_block)].at(on_step)->releases.push_back(
            semaphore->second);
      }
    }
  }
}

}  // namespace

std::vector<std::vector<BlockTask>> tasks_of(const std::vector<msccl::ThreadBlock>& blocks, int gpu,
                                             const Messages& messages,
                                             std::vector<int>& semaphores) {
  std::vector<std::vector<BlockTask>> tasks;
  for (const msccl::ThreadBlock& block : blocks) {
    tasks.push_back(tasks_of_block(block, lane_of(messages, gpu, block)));
  }
  connect(tasks, semaphores);
  return tasks;
}

}  // namespace unisono::mscclpp
