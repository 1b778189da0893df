#include "mscclpp/order.h"

#include <deque>
#include <map>
#include <utility>

namespace unisono::mscclpp {

OperationTable::OperationTable(const ExecutionPlan& plan) {
  for (const PlanGpu& gpu : plan.gpus) {
    add_gpu();
    for (const ThreadBlock& block : gpu.blocks) {
      add_block(block.size());
      for (const PlanOperation& operation : block) {
        operations_.push_back(&operation);
        types_.push_back(operation.type);
      }
    }
  }
  for (std::size_t index = 0; index < size(); ++index) {
    if (type(index) == OperationType::barrier) {
      std::vector<std::size_t>& come = at_barriers_[{id(index).gpu, operation(index).barrier}];
      if (come.empty() || come.back() != block_number(index)) {
        come.push_back(block_number(index));
      }
    }
  }
}

CounterTable::CounterTable(const ExecutionPlan& plan, const OperationTable& table) {
  std::vector<std::size_t> first_channel;  // of each GPU
  std::vector<std::size_t> first_semaphore;
  for (const PlanGpu& gpu : plan.gpus) {
    first_channel.push_back(initial_.size());
    initial_.insert(initial_.end(), gpu.channels.size(), 0);
    first_semaphore.push_back(initial_.size());
    initial_.insert(initial_.end(), gpu.semaphores.begin(), gpu.semaphores.end());
  }
  const std::vector<std::vector<int>> ends = other_ends(plan);
  for (std::size_t index = 0; index < table.size(); ++index) {
    first_used_.push_back(used_.size());
    const PlanOperation& operation = table.operation(index);
    const bool raises = traits_of(operation.type).effect == Effect::raises;
    const auto gpu = static_cast<std::size_t>(table.id(index).gpu);
    for (const int number : operation.channels) {
      const auto channel = static_cast<std::size_t>(number);
      const int end = raises ? ends[gpu][channel] : number;
      const std::size_t at =
          raises ? static_cast<std::size_t>(plan.gpus[gpu].channels[channel]) : gpu;
      used_.push_back(end < 0 ? none() : first_channel[at] + static_cast<std::size_t>(end));
    }
    for (const int semaphore : operation.semaphores) {
      used_.push_back(first_semaphore[gpu] + static_cast<std::size_t>(semaphore));
    }
  }
  first_used_.push_back(used_.size());
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
    if (operation.type == OperationType::barrier) {
      return meet(block, table_.id(index).gpu, operation.barrier);
    }
    switch (traits_of(operation.type).effect) {
      case Effect::lowers:
        if (!lower(block, counters_.of(index))) {
          return false;
        }
        break;
      case Effect::raises:
        for (const std::size_t counter : counters_.of(index)) {
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

  // No counter occurs twice in one operation.
  bool lower(std::size_t block, std::span<const std::size_t> counters) {
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

  // An earlier check ensures the number of arrivals: all of them.
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
