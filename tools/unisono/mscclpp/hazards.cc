#include "mscclpp/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "mscclpp/clocks.h"
#include "schedule/cells.h"

namespace unisono::mscclpp {
namespace {

using msccl::Flaw;

constexpr std::size_t kMostHazards = 100;

// The blocks that touch the memory of a GPU, and all of that GPU.
std::vector<std::size_t> blocks_around(const OperationTable& table, int gpu) {
  std::set<std::size_t> blocks;
  for (std::size_t index = 0; index < table.size(); ++index) {
    const PlanOperation& operation = table.operation(index);
    const auto is_there = [&](const PlanPlace& place) { return place.gpu == gpu; };
    if (table.id(index).gpu == gpu ||
        std::any_of(operation.sources.begin(), operation.sources.end(), is_there) ||
        std::any_of(operation.targets.begin(), operation.targets.end(), is_there)) {
      blocks.insert(table.block_number(index));
    }
  }
  return {blocks.begin(), blocks.end()};
}

class MemoryOfGpu {
 public:
  MemoryOfGpu(int gpu, const OperationTable& table, const CounterTable& counters,
              const PlanOrder& order, const msccl::BufferContents& memory, std::vector<Flaw>& flaws)
      : gpu_(gpu),
        table_(table),
        counters_(counters),
        order_(order),
        memory_(memory),
        flaws_(flaws),
        around_(blocks_around(table, gpu)),
        clocks_(table, counters, around_),
        stretches_(table.size(), 0) {}

  void run() {
    for (std::size_t i = 0; i < order_.operations.size(); ++i) {
      const std::size_t index = order_.operations[i];
      const PlanOperation& operation = table_.operation(index);
      const int gpu = table_.id(index).gpu;
      stretches_[index] = clocks_.stretch(table_.block_number(index));
      if (operation.type == OperationType::barrier) {
        const std::vector<std::size_t>& blocks = table_.blocks_at_barrier(gpu, operation.barrier);
        clocks_.join(blocks);
        i += blocks.size() - 1;
        continue;
      }
      if (gpu == gpu_) {
        check_counters(index, operation);
        check_within(index, operation);
      }
      for (const PlanPlace& place : operation.sources) {
        visit(index, place, false);
      }
      for (const PlanPlace& place : operation.targets) {
        visit(index, place, true);
      }
      clocks_.run(index);
    }
    check_end();
  }

 private:
  struct Accesses {
    std::size_t write = none();
    std::vector<std::size_t> reads;  // since then; of one stretch, the first is enough
  };
  struct Use {  // of a counter
    std::size_t operation = 0;
    std::size_t thread = 0;
  };
  static constexpr std::size_t none() { return static_cast<std::size_t>(-1); }

  void blame(std::size_t index, std::string text) {
    if (flaws_.size() < kMostHazards) {
      const OperationTable::Id at = table_.id(index);
      flaws_.push_back({at.gpu, at.block, at.operation, std::move(text)});
    }
  }

  // The counts of one block would be those of another, if nothing says whose turn it is. So with
  // the threads of a block: the k-th counter of an operation is the k-th thread's, and what a
  // thread counts is loaded and stored as any number is.
  void check_counters(std::size_t index, const PlanOperation& operation) {
    const Effect effect = traits_of(operation.type).effect;
    if (effect != Effect::raises && effect != Effect::lowers) {
      return;
    }
    const std::size_t block = table_.block_number(index);
    const std::string_view what = operation.semaphores.empty() ? "channel" : "semaphore";
    const std::vector<std::size_t> counters = counters_.of(gpu_, operation);
    for (std::size_t thread = 0; thread < counters.size(); ++thread) {
      if (counters[thread] == CounterTable::none()) {
        continue;
      }
      const Use use{.operation = index, .thread = thread};
      const auto [last, is_new] = users_.try_emplace({counters[thread], effect}, use);
      const OperationTable::Id before = table_.id(last->second.operation);
      const std::size_t other = table_.block_number(before);
      if (other != block && !clocks_.knows(block, other, stretches_[last->second.operation])) {
        blame(index, fmt::format("uses the same {} as thread block {}, and nothing says which is "
                                 "first",
                                 what, before.block));
      } else if (is_same_stretch(last->second.operation, index) && last->second.thread != thread) {
        blame(index, fmt::format("uses the same {} as step {}, at another place of its list and so "
                                 "on another thread: no nop is between them",
                                 what, before.operation));
      }
      last->second = use;
    }
  }

  // Threads do the chunks of an operation in no order, but each does the same part of all places.
  void check_within(std::size_t index, const PlanOperation& operation) {
    const bool adds = traits_of(operation.type).effect == Effect::adds;
    for (std::size_t t = 0; t < operation.targets.size(); ++t) {
      const PlanPlace& target = operation.targets[t];
      for (std::size_t s = 0; s < operation.sources.size(); ++s) {
        const PlanPlace& source = operation.sources[s];
        const bool is_same = (adds || s == t) && cell(source, 0) == cell(target, 0);
        if (!is_same && meet(source, target)) {
          blame(index, "writes what it reads as another chunk");
        }
      }
      for (std::size_t other = 0; other < t; ++other) {
        if (meet(operation.targets[other], target)) {
          blame(index, "writes a chunk twice");
        }
      }
    }
  }
  // The cells of a place stand behind each other, in place as well.
  bool meet(const PlanPlace& one, const PlanPlace& other) const {
    return cell(one, 0) < cell(other, other.chunks) && cell(other, 0) < cell(one, one.chunks);
  }

  std::uint64_t cell(const PlanPlace& place, int i) const {
    return memory_.cell(place.gpu, {.buffer = place.buffer, .offset = place.offset + i});
  }

  void visit(std::size_t index, const PlanPlace& place, bool writes) {
    if (place.gpu != gpu_) {
      return;
    }
    const std::size_t block = table_.block_number(index);
    if (table_.id(index).gpu != gpu_) {
      check_begun(index, block, writes);
      last_remote_[block] = index;
    }
    for (int i = 0; i < place.chunks; ++i) {
      Accesses& before = accesses_[cell(place, i)];
      check(index, before.write, writes, true, place, i);
      if (!writes) {
        if (before.reads.empty() || !is_same_stretch(before.reads.back(), index)) {
          before.reads.push_back(index);
        }
        continue;
      }
      for (const std::size_t read : before.reads) {
        check(index, read, true, false, place, i);
      }
      before = {.write = index, .reads = {}};
    }
  }

  bool is_same_stretch(std::size_t one, std::size_t other) const {
    return table_.block_number(one) == table_.block_number(other) &&
           stretches_[one] == stretches_[other];
  }

  void check_begun(std::size_t index, std::size_t block, bool writes) {
    const bool is_known = std::any_of(around_.begin(), around_.end(), [&](std::size_t other) {
      return table_.begin(other) < table_.end(other) &&
             table_.id(table_.begin(other)).gpu == gpu_ && clocks_.knows(block, other, 0);
    });
    if (!is_known) {
      blame(index, fmt::format("{} GPU {}, and nothing says that it has begun",
                               writes ? "writes to" : "reads from", gpu_));
    }
  }

  void check(std::size_t index, std::size_t before, bool writes, bool wrote, const PlanPlace& place,
             int i) {
    if (before == none() || before == index ||
        clocks_.knows(table_.block_number(index), table_.block_number(before),
                      stretches_[before])) {
      return;
    }
    const OperationTable::Id first = table_.id(before);
    const bool is_same_block = table_.block_number(index) == table_.block_number(before);
    blame(index,
          fmt::format("{} {} chunk {} of GPU {}, which step {} of thread block {} of GPU {} {}: {}",
                      writes ? "writes" : "reads", to_string(place.buffer), place.offset + i, gpu_,
                      first.operation, first.block, first.gpu, wrote ? "writes" : "reads",
                      is_same_block ? "no nop is between them" : "nothing says which is first"));
  }

  // When its kernel ends, the caller has its buffers again.
  void check_end() {
    for (const auto& [block, index] : last_remote_) {
      const bool is_known = std::any_of(around_.begin(), around_.end(), [&](std::size_t other) {
        return table_.begin(other) < table_.end(other) &&
               table_.id(table_.begin(other)).gpu == gpu_ &&
               clocks_.knows_at_end(other, block, stretches_[index]);
      });
      if (!is_known) {
        blame(index, fmt::format("GPU {} does not wait for this, and may end before", gpu_));
      }
    }
  }

  int gpu_;
  const OperationTable& table_;
  const CounterTable& counters_;
  const PlanOrder& order_;
  const msccl::BufferContents& memory_;
  std::vector<Flaw>& flaws_;
  std::vector<std::size_t> around_;
  Clocks clocks_;
  std::vector<int> stretches_;  // of each operation that ran
  std::unordered_map<std::uint64_t, Accesses> accesses_;
  std::map<std::pair<std::size_t, Effect>, Use> users_;  // the last one of each counter
  std::map<std::size_t, std::size_t> last_remote_;       // of each block of another GPU
};

}  // namespace

std::vector<Flaw> find_hazards(const ExecutionPlan& plan, const OperationTable& table,
                               const CounterTable& counters, const PlanOrder& order,
                               const msccl::BufferContents& memory) {
  std::vector<Flaw> flaws;
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    MemoryOfGpu(static_cast<int>(gpu), table, counters, order, memory, flaws).run();
  }
  return flaws;
}

}  // namespace unisono::mscclpp
