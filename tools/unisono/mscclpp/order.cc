#include "mscclpp/order.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace unisono::mscclpp {

OperationTable::OperationTable(const ExecutionPlan& plan) : plan_(plan) {
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    first_blocks_.push_back(first_.size());
    const std::vector<ThreadBlock>& blocks = plan.gpus[gpu].blocks;
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      first_.push_back(ids_.size());
      for (std::size_t i = 0; i < blocks[block].size(); ++i) {
        ids_.push_back({static_cast<int>(gpu), static_cast<int>(block), static_cast<int>(i)});
      }
    }
  }
}

const PlanOperation& OperationTable::operation(std::size_t index) const {
  const Id at = ids_[index];
  return plan_.gpus[static_cast<std::size_t>(at.gpu)]
      .blocks[static_cast<std::size_t>(at.block)][static_cast<std::size_t>(at.operation)];
}

std::size_t OperationTable::end(std::size_t block) const {
  return block + 1 < first_.size() ? first_[block + 1] : ids_.size();
}

std::size_t OperationTable::block_number(Id id) const {
  return first_blocks_[static_cast<std::size_t>(id.gpu)] + static_cast<std::size_t>(id.block);
}

CounterTable::CounterTable(const ExecutionPlan& plan) : plan_(plan) {
  for (const PlanGpu& gpu : plan.gpus) {
    first_channel_.push_back(initial_.size());
    initial_.insert(initial_.end(), gpu.channels.size(), 0);
    first_semaphore_.push_back(initial_.size());
    initial_.insert(initial_.end(), gpu.semaphores.begin(), gpu.semaphores.end());
  }
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    std::vector<std::size_t>& raised = raised_.emplace_back();
    const std::vector<int>& channels = plan.gpus[gpu].channels;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const int other = other_end(plan, static_cast<int>(gpu), static_cast<int>(i));
      raised.push_back(other < 0 ? none()
                                 : first_channel_[static_cast<std::size_t>(channels[i])] +
                                       static_cast<std::size_t>(other));
    }
  }
}

std::vector<std::size_t> CounterTable::of(int gpu, const PlanOperation& operation) const {
  const auto at = static_cast<std::size_t>(gpu);
  const bool raises = traits_of(operation.type).effect == Effect::raises;
  std::vector<std::size_t> counters;
  for (const int channel : operation.channels) {
    const auto index = static_cast<std::size_t>(channel);
    counters.push_back(raises ? raised_[at][index] : first_channel_[at] + index);
  }
  for (const int semaphore : operation.semaphores) {
    counters.push_back(first_semaphore_[at] + static_cast<std::size_t>(semaphore));
  }
  return counters;
}

std::vector<std::size_t> blocks_at_barrier(const ExecutionPlan& plan, const OperationTable& table,
                                           int gpu, int barrier) {
  std::vector<std::size_t> found;
  const std::vector<ThreadBlock>& blocks = plan.gpus[static_cast<std::size_t>(gpu)].blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (std::any_of(blocks[i].begin(), blocks[i].end(), [&](const PlanOperation& operation) {
          return operation.type == OperationType::barrier && operation.barrier == barrier;
        })) {
      found.push_back(table.block_number({gpu, static_cast<int>(i), 0}));
    }
  }
  return found;
}

namespace {

class PlanRunner {
 public:
  PlanRunner(const ExecutionPlan& plan, const OperationTable& table, const CounterTable& counters)
      : plan_(plan), table_(table), counters_(counters), waiting_(counters.size()) {
    for (std::size_t counter = 0; counter < counters.size(); ++counter) {
      order_.counts.push_back(counters.initial(counter));
    }
    for (std::size_t block = 0; block < table.blocks(); ++block) {
      next_.push_back(table.begin(block));
      ready_.push_back(block);
    }
  }

  PlanOrder run() {
    while (!ready_.empty()) {
      const std::size_t block = ready_.front();
      ready_.pop_front();
      while (next_[block] < table_.end(block) && advance(block)) {
      }
    }
    for (std::size_t block = 0; block < next_.size(); ++block) {
      if (next_[block] < table_.end(block)) {
        order_.stuck.push_back(next_[block]);
      }
    }
    return std::move(order_);
  }

 private:
  bool advance(std::size_t block) {
    const std::size_t index = next_[block];
    const PlanOperation& operation = table_.operation(index);
    const int gpu = table_.id(index).gpu;
    if (operation.type == OperationType::barrier) {
      return meet(gpu, operation);
    }
    switch (traits_of(operation.type).effect) {
      case Effect::lowers:
        if (!lower(block, counters_.of(gpu, operation))) {
          return false;
        }
        break;
      case Effect::raises:
        for (const std::size_t counter : counters_.of(gpu, operation)) {
          if (counter != CounterTable::none()) {
            ++order_.counts[counter];
            ready_.insert(ready_.end(), waiting_[counter].begin(), waiting_[counter].end());
            waiting_[counter].clear();
          }
        }
        break;
      case Effect::joins:
      case Effect::moves:
      case Effect::adds:
        break;
    }
    order_.operations.push_back(index);
    ++next_[block];
    return true;
  }

  bool lower(std::size_t block, const std::vector<std::size_t>& counters) {
    for (const std::size_t counter : counters) {
      if (order_.counts[counter] < std::count(counters.begin(), counters.end(), counter)) {
        waiting_[counter].push_back(block);
        return false;
      }
    }
    for (const std::size_t counter : counters) {
      --order_.counts[counter];
    }
    return true;
  }

  bool meet(int gpu, const PlanOperation& operation) {
    const std::vector<std::size_t> blocks =
        blocks_at_barrier(plan_, table_, gpu, operation.barrier);
    const bool all_there = std::all_of(blocks.begin(), blocks.end(), [&](std::size_t block) {
      if (next_[block] == table_.end(block)) {
        return false;
      }
      const PlanOperation& there = table_.operation(next_[block]);
      return there.type == OperationType::barrier && there.barrier == operation.barrier;
    });
    // How many must come is checked before: all of them.
    if (!all_there) {
      return false;
    }
    for (const std::size_t block : blocks) {
      order_.operations.push_back(next_[block]++);
      ready_.push_back(block);
    }
    return true;
  }

  const ExecutionPlan& plan_;
  const OperationTable& table_;
  const CounterTable& counters_;
  PlanOrder order_;
  std::vector<std::size_t> next_;                  // of each block
  std::vector<std::vector<std::size_t>> waiting_;  // blocks, for each counter
  std::deque<std::size_t> ready_;
};

}  // namespace

PlanOrder order_of(const ExecutionPlan& plan, const OperationTable& table,
                   const CounterTable& counters) {
  return PlanRunner(plan, table, counters).run();
}

}  // namespace unisono::mscclpp
