#include "mscclpp/order.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace unisono::mscclpp {

OperationTable::OperationTable(const ExecutionPlan& plan) : plan_(plan) {
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    first_blocks_.push_back(first_.size());
    const std::vector<ThreadBlock>& blocks = plan.gpus[gpu].blocks;
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      first_.push_back(ids_.size());
      for (std::size_t i = 0; i < blocks[block].size(); ++i) {
        const PlanOperation& operation = blocks[block][i];
        if (operation.type == OperationType::barrier) {
          std::vector<std::size_t>& come = at_barriers_[{static_cast<int>(gpu), operation.barrier}];
          if (come.empty() || come.back() != first_.size() - 1) {
            come.push_back(first_.size() - 1);
          }
        }
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
  const std::vector<std::vector<int>> ends = other_ends(plan);
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    std::vector<std::size_t>& raised = raised_.emplace_back();
    const std::vector<int>& channels = plan.gpus[gpu].channels;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const int other = ends[gpu][i];
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

namespace {

class PlanRunner {
 public:
  PlanRunner(const OperationTable& table, const CounterTable& counters)
      : table_(table), counters_(counters), waiting_(counters.size()) {
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
      return meet(block, gpu, operation.barrier);
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

  // None comes twice in one operation.
  bool lower(std::size_t block, const std::vector<std::size_t>& counters) {
    for (const std::size_t counter : counters) {
      if (order_.counts[counter] == 0) {
        waiting_[counter].push_back(block);
        return false;
      }
    }
    for (const std::size_t counter : counters) {
      --order_.counts[counter];
    }
    return true;
  }

  // How many must come is checked before: all of them.
  bool meet(std::size_t block, int gpu, int barrier) {
    const std::vector<std::size_t>& blocks = table_.blocks_at_barrier(gpu, barrier);
    std::size_t& there = there_[{gpu, barrier}];
    if (++there < blocks.size()) {
      return false;
    }
    there = 0;
    for (const std::size_t other : blocks) {
      order_.operations.push_back(next_[other]++);
      if (other != block) {
        ready_.push_back(other);
      }
    }
    return true;
  }

  const OperationTable& table_;
  const CounterTable& counters_;
  PlanOrder order_;
  std::vector<std::size_t> next_;                     // of each block
  std::vector<std::vector<std::size_t>> waiting_;     // blocks, for each counter
  std::map<std::pair<int, int>, std::size_t> there_;  // blocks that wait at a barrier of a GPU
  std::deque<std::size_t> ready_;                     // each block is here, or waits, or neither
};

}  // namespace

PlanOrder order_of(const OperationTable& table, const CounterTable& counters) {
  return PlanRunner(table, counters).run();
}

}  // namespace unisono::mscclpp
