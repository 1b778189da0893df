#include "mscclpp/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "mscclpp/clocks.h"
#include "schedule/cells.h"

namespace unisono::mscclpp {
namespace {

using executors::BufferContents;
using executors::Flaws;
using executors::StepId;

std::uint64_t cell_of(const BufferContents& memory, const PlanPlace& place, int chunk) {
  return memory.cell(place.gpu, chunk_of(place, chunk));
}

// The cells of a place are consecutive, also in place.
bool meet(const BufferContents& memory, const PlanPlace& one, const PlanPlace& other) {
  return cell_of(memory, one, 0) < cell_of(memory, other, other.chunks) &&
         cell_of(memory, other, 0) < cell_of(memory, one, one.chunks);
}

// Threads process the chunks of an operation in any order, but each thread processes the same part
// of all places.
void check_within(const StepId& at, const PlanOperation& operation, const BufferContents& memory,
                  Flaws& flaws) {
  const bool adds = traits_of(operation.type).effect == Effect::adds;
  for (std::size_t t = 0; t < operation.targets.size(); ++t) {
    const PlanPlace& target = operation.targets[t];
    for (std::size_t s = 0; s < operation.sources.size(); ++s) {
      const PlanPlace& source = operation.sources[s];
      const bool is_same =
          (adds || s == t) && cell_of(memory, source, 0) == cell_of(memory, target, 0);
      if (!is_same && meet(memory, source, target)) {
        flaws.add(at, "writes to chunks that it reads as others");
      }
    }
    for (std::size_t other = 0; other < t; ++other) {
      if (meet(memory, operation.targets[other], target)) {
        flaws.add(at, "writes a chunk twice");
      }
    }
  }
}

// The users of a GPU's counters. Without an order between two blocks, one could take the counts of
// the other. The threads of a block are similar: the k-th counter of an operation belongs to the
// k-th thread, which loads and stores its count as an ordinary number.
class CounterUses {
 public:
  CounterUses(const OperationTable& table, const CounterTable& counters, const Clocks& clocks)
      : table_(table), counters_(counters), clocks_(clocks) {}

  void visit(std::size_t index, Flaws& flaws) {
    const PlanOperation& operation = table_.operation(index);
    const Effect effect = traits_of(operation.type).effect;
    const std::string_view what = operation.semaphores.empty() ? "channel" : "semaphore";
    const std::span<const std::size_t> counters = counters_.of(index);
    for (std::size_t thread = 0; thread < counters.size(); ++thread) {
      if (counters[thread] == CounterTable::none()) {
        continue;
      }
      const Use use{.operation = index, .thread = thread};
      const auto [last, is_new] = last_.try_emplace({counters[thread], effect}, use);
      check(last->second, use, what, flaws);
      last->second = use;
    }
  }

 private:
  struct Use {
    std::size_t operation = 0;
    std::size_t thread = 0;
  };

  void check(const Use& before, const Use& use, std::string_view what, Flaws& flaws) const {
    const StepId& at = table_.id(use.operation);
    const StepId& first = table_.id(before.operation);
    const bool is_same_block = first.block == at.block;  // on the same GPU
    if (!is_same_block && !clocks_.is_over(before.operation, use.operation)) {
      flaws.add(at, fmt::format("uses the same {} as thread block {}, in undefined order", what,
                                first.block));
    } else if (clocks_.is_same_stretch(before.operation, use.operation) &&
               before.thread != use.thread) {
      flaws.add(at, fmt::format("uses the same {} as step {}, at another place of its list and so "
                                "on another thread, without a nop between them",
                                what, first.step));
    }
  }

  const OperationTable& table_;
  const CounterTable& counters_;
  const Clocks& clocks_;
  std::map<std::pair<std::size_t, Effect>, Use> last_;
};

// The readers and writers of the cells of a GPU's memory.
class CellUses {
 public:
  CellUses(const OperationTable& table, const BufferContents& memory, const Clocks& clocks)
      : table_(table), memory_(memory), clocks_(clocks) {}

  void visit(std::size_t index, const PlanPlace& place, bool writes, Flaws& flaws) {
    for (int chunk = 0; chunk < place.chunks; ++chunk) {
      Uses& before = uses_[cell_of(memory_, place, chunk)];
      const Use use{.operation = index, .place = place, .chunk = chunk, .writes = writes};
      if (before.write != OperationTable::none()) {
        check(before.write, true, use, flaws);
      }
      if (!writes) {
        if (before.reads.empty() || !clocks_.is_same_stretch(before.reads.back(), index)) {
          before.reads.push_back(index);
        }
        continue;
      }
      for (const std::size_t read : before.reads) {
        check(read, false, use, flaws);
      }
      before = {.write = index, .reads = {}};
    }
  }

 private:
  struct Uses {  // of a cell
    std::size_t write = OperationTable::none();
    std::vector<std::size_t> reads;  // since the last write; one per stretch is enough
  };
  struct Use {
    std::size_t operation;
    const PlanPlace& place;
    int chunk;
    bool writes;
  };

  void check(std::size_t before, bool wrote, const Use& use, Flaws& flaws) const {
    if (before == use.operation || clocks_.is_over(before, use.operation)) {
      return;
    }
    const StepId& first = table_.id(before);
    const bool is_same_block = table_.block_number(before) == table_.block_number(use.operation);
    flaws.add(
        table_.id(use.operation),
        fmt::format("{} {} chunk {} of GPU {}, which step {} of thread block {} of GPU {} {}: {}",
                    use.writes ? "writes" : "reads", to_string(use.place.buffer),
                    use.place.offset + use.chunk, use.place.gpu, first.step, first.block, first.gpu,
                    wrote ? "writes" : "reads",
                    is_same_block ? "no nop is between them" : "their order is undefined"));
  }

  const OperationTable& table_;
  const BufferContents& memory_;
  const Clocks& clocks_;
  std::unordered_map<std::uint64_t, Uses> uses_;
};

// Checks that others access a GPU's memory only after it has begun and before it ends, because its
// caller then owns the buffers again.
class RemoteUses {
 public:
  // `own`: the blocks of the GPU.
  RemoteUses(int gpu, std::vector<std::size_t> own, const OperationTable& table,
             const Clocks& clocks)
      : gpu_(gpu), own_(std::move(own)), table_(table), clocks_(clocks) {}

  void visit(std::size_t index, bool writes, Flaws& flaws) {
    const std::size_t block = table_.block_number(index);
    last_[block] = index;
    if (std::none_of(own_.begin(), own_.end(),
                     [&](std::size_t own) { return clocks_.has_begun(own, block); })) {
      flaws.add(table_.id(index), fmt::format("{} GPU {} without knowing that it has started",
                                              writes ? "writes to" : "reads from", gpu_));
    }
  }

  void end(Flaws& flaws) const {
    for (const auto& [block, index] : last_) {
      if (std::none_of(own_.begin(), own_.end(), [&, last = index](std::size_t own) {
            return clocks_.is_over_at_end(last, own);
          })) {
        flaws.add(table_.id(index),
                  fmt::format("GPU {} does not wait for this, and may end earlier", gpu_));
      }
    }
  }

 private:
  int gpu_;
  std::vector<std::size_t> own_;
  const OperationTable& table_;
  const Clocks& clocks_;
  std::map<std::size_t, std::size_t> last_;  // of each block of another GPU
};

// The blocks that use a GPU: its own blocks, and those that access its memory.
struct Visits {
  std::vector<std::size_t> own = {};         // blocks that do something
  std::vector<std::size_t> blocks = {};      // all of them
  std::vector<std::size_t> operations = {};  // in the order in which they run, without nops
};

std::vector<Visits> visits_of(const ExecutionPlan& plan, const OperationTable& table,
                              const PlanOrder& order) {
  std::vector<Visits> visits(plan.gpus.size());
  for (std::size_t block = 0; block < table.blocks(); ++block) {
    if (table.begin(block) < table.end(block)) {
      Visits& home = visits[static_cast<std::size_t>(table.id(table.begin(block)).gpu)];
      home.own.push_back(block);
      home.blocks.push_back(block);
    }
  }
  for (const std::size_t index : order.operations) {
    if (traits_of(table.type(index)).effect == Effect::joins) {
      continue;
    }
    const auto visit = [&](int gpu) {
      std::vector<std::size_t>& operations = visits[static_cast<std::size_t>(gpu)].operations;
      if (operations.empty() || operations.back() != index) {
        operations.push_back(index);
        visits[static_cast<std::size_t>(gpu)].blocks.push_back(table.block_number(index));
      }
    };
    visit(table.id(index).gpu);
    for (const PlanPlace& place : table.operation(index).sources) {
      visit(place.gpu);
    }
    for (const PlanPlace& place : table.operation(index).targets) {
      visit(place.gpu);
    }
  }
  for (Visits& one : visits) {
    std::sort(one.blocks.begin(), one.blocks.end());
    one.blocks.erase(std::unique(one.blocks.begin(), one.blocks.end()), one.blocks.end());
  }
  return visits;
}

class MemoryOfGpu {
 public:
  MemoryOfGpu(int gpu, const Visits& visits, const OperationTable& table,
              const CounterTable& counters, const BufferContents& memory)
      : gpu_(gpu),
        visits_(visits),
        table_(table),
        memory_(memory),
        clocks_(table, counters, visits.blocks),
        counters_(table, counters, clocks_),
        cells_(table, memory, clocks_),
        remote_(gpu, visits.own, table, clocks_) {}

  void run(const PlanOrder& order, Flaws& flaws) {
    auto next = visits_.operations.begin();
    for (std::size_t i = 0; i < order.operations.size(); ++i) {
      const std::size_t index = order.operations[i];
      if (table_.type(index) == OperationType::barrier) {
        const std::vector<std::size_t>& blocks =
            table_.blocks_at_barrier(table_.id(index).gpu, table_.operation(index).barrier);
        clocks_.join(blocks);
        i += blocks.size() - 1;
        continue;
      }
      if (next != visits_.operations.end() && *next == index) {
        visit(index, flaws);
        ++next;
      }
      clocks_.run(index);
    }
    remote_.end(flaws);
  }

 private:
  void visit(std::size_t index, Flaws& flaws) {
    const PlanOperation& operation = table_.operation(index);
    const bool is_own = table_.id(index).gpu == gpu_;
    if (is_own) {
      counters_.visit(index, flaws);
      check_within(table_.id(index), operation, memory_, flaws);
    }
    for (const bool writes : {false, true}) {
      for (const PlanPlace& place : writes ? operation.targets : operation.sources) {
        if (place.gpu != gpu_) {
          continue;
        }
        if (!is_own) {
          remote_.visit(index, writes, flaws);
        }
        cells_.visit(index, place, writes, flaws);
      }
    }
  }

  int gpu_;
  const Visits& visits_;
  const OperationTable& table_;
  const BufferContents& memory_;
  Clocks clocks_;
  CounterUses counters_;
  CellUses cells_;
  RemoteUses remote_;
};

}  // namespace

std::vector<executors::Flaw> find_hazards(const ExecutionPlan& plan, const OperationTable& table,
                                          const CounterTable& counters, const PlanOrder& order,
                                          const BufferContents& memory) {
  Flaws flaws;
  const std::vector<Visits> visits = visits_of(plan, table, order);
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    MemoryOfGpu(static_cast<int>(gpu), visits[gpu], table, counters, memory).run(order, flaws);
  }
  return std::move(flaws).take();
}

}  // namespace unisono::mscclpp
