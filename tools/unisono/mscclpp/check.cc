#include "mscclpp/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executors/contents.h"
#include "executors/data_flow.h"
#include "mscclpp/hazards.h"
#include "mscclpp/order.h"
#include "schedule/cells.h"

namespace unisono::mscclpp {
namespace {

using executors::Flaw;
using executors::StepId;
using executors::Value;

// Moves sums along an order in which the operations can run.
class PlanFlow {
 public:
  PlanFlow(const OperationTable& table, const Schedule& shape, bool is_in_place)
      : table_(table), flow_(shape, is_in_place) {}

  std::vector<Flaw> run(const PlanOrder& order) {
    for (const std::size_t index : order.operations) {
      const PlanOperation& operation = table_.operation(index);
      if (traits_of(operation.type).effect == Effect::moves) {
        move(table_.id(index), operation);
      } else if (traits_of(operation.type).effect == Effect::adds) {
        add(table_.id(index), operation);
      }
    }
    return std::move(flow_).finish();
  }

 private:
  void move(const StepId& at, const PlanOperation& operation) {
    for (std::size_t i = 0; i < operation.targets.size(); ++i) {
      for (int chunk = 0; chunk < operation.targets[i].chunks; ++chunk) {
        write(at, operation.targets[i], chunk, read(at, operation.sources[i], chunk));
      }
    }
  }

  void add(const StepId& at, const PlanOperation& operation) {
    for (int chunk = 0; chunk < operation.targets.front().chunks; ++chunk) {
      Value value = read(at, operation.sources.front(), chunk);
      for (std::size_t i = 1; i < operation.sources.size(); ++i) {
        value = flow_.sum(at, value, read(at, operation.sources[i], chunk));
      }
      for (const PlanPlace& target : operation.targets) {
        write(at, target, chunk, value);
      }
    }
  }

  Value read(const StepId& at, const PlanPlace& place, int chunk) {
    return flow_.read(at, place.gpu, chunk_of(place, chunk));
  }
  void write(const StepId& at, const PlanPlace& place, int chunk, Value value) {
    flow_.write(at, place.gpu, chunk_of(place, chunk), std::move(value));
  }

  const OperationTable& table_;
  executors::DataFlow flow_;
};

// Returns the channel or semaphore that an operation waits for and that has nothing.
std::size_t missing(const CounterTable& counters, const PlanOrder& order, std::size_t operation) {
  const auto used = counters.of(operation);
  const auto found = std::find_if(used.begin(), used.end(), [&](std::size_t counter) {
    return counter != CounterTable::none() && order.counts[counter] == 0;
  });
  return found == used.end() ? 0 : static_cast<std::size_t>(found - used.begin());
}

Flaw deadlock(const ExecutionPlan& plan, const OperationTable& table, const CounterTable& counters,
              const PlanOrder& order) {
  constexpr std::size_t kMostTold = 4;
  std::string text = "deadlock: ";
  for (std::size_t i = 0; i < order.stuck.size() && i < kMostTold; ++i) {
    const StepId& at = table.id(order.stuck[i]);
    const PlanOperation& operation = table.operation(order.stuck[i]);
    const auto& channels = plan.gpus[static_cast<std::size_t>(at.gpu)].channels;
    std::string what = fmt::format("the others at barrier {}", operation.barrier);
    const std::size_t awaited = missing(counters, order, order.stuck[i]);
    if (!operation.channels.empty()) {
      const auto channel = static_cast<std::size_t>(operation.channels[awaited]);
      what = fmt::format("a signal of GPU {} on channel {}", channels[channel], channel);
    } else if (!operation.semaphores.empty()) {
      what = fmt::format("semaphore {}", operation.semaphores[awaited]);
    }
    text += fmt::format("{}step {} of thread block {} of GPU {} waits for {}", i == 0 ? "" : "; ",
                        at.step, at.block, at.gpu, what);
  }
  if (order.stuck.size() > kMostTold) {
    text += fmt::format("; {} more blocks wait", order.stuck.size() - kMostTold);
  }
  return {.text = std::move(text)};
}

// If a counter does not end at its initial value, the next launch goes wrong.
void check_counts(const ExecutionPlan& plan, const CounterTable& counters, const PlanOrder& order,
                  std::vector<Flaw>& flaws) {
  std::size_t counter = 0;
  const auto check = [&](std::string_view what, std::size_t i, std::size_t gpu) {
    if (order.counts[counter] != counters.initial(counter)) {
      flaws.push_back(
          {.text = fmt::format("{} {} of GPU {} ends at {} instead of {}: the next "
                               "launch would not wait",
                               what, i, gpu, order.counts[counter], counters.initial(counter))});
    }
    ++counter;
  };
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    for (std::size_t i = 0; i < plan.gpus[gpu].channels.size(); ++i) {
      check("channel", i, gpu);
    }
    for (std::size_t i = 0; i < plan.gpus[gpu].semaphores.size(); ++i) {
      check("semaphore", i, gpu);
    }
  }
}

// If two buffers overlap, the smaller one begins at a different offset on each GPU.
bool is_misplaced(const ExecutionPlan& plan, const PlanPlace& place) {
  const Holding held = place.buffer == Buffer::input ? traits_of(plan.collective).input
                                                     : traits_of(plan.collective).output;
  return plan.in_place && place.buffer != Buffer::scratch && held == Holding::part;
}

void check_operations(const ExecutionPlan& plan, const OperationTable& table,
                      const CounterTable& counters, std::vector<Flaw>& flaws) {
  for (std::size_t index = 0; index < table.size(); ++index) {
    const PlanOperation& operation = table.operation(index);
    const StepId& at = table.id(index);
    const auto blame = [&](std::string text) { flaws.push_back({at, std::move(text)}); };
    if (operation.type == OperationType::barrier) {
      const std::size_t come = table.blocks_at_barrier(at.gpu, operation.barrier).size();
      if (static_cast<std::size_t>(operation.barrier_blocks) != come) {
        blame(fmt::format("barrier {} is for {} thread blocks, but {} arrive", operation.barrier,
                          operation.barrier_blocks, come));
      }
    }
    for (const std::vector<PlanPlace>* places : {&operation.sources, &operation.targets}) {
      for (const PlanPlace& place : *places) {
        if (place.gpu != at.gpu && is_misplaced(plan, place)) {
          blame(
              fmt::format("accesses the {} of GPU {} in place: the executor uses its own offset "
                          "for the other GPU's",
                          to_string(place.buffer), place.gpu));
        }
      }
    }
    for (const std::size_t counter : counters.of(index)) {
      if (counter == CounterTable::none()) {
        blame("signals on a channel that the other GPU does not have");
      }
    }
  }
}

}  // namespace

PlanProof check(const ExecutionPlan& plan) {
  const OperationTable table(plan);
  const CounterTable counters(plan, table);
  PlanProof proof;
  for (const PlanGpu& gpu : plan.gpus) {
    proof.most_blocks = std::max(proof.most_blocks, gpu.blocks.size());
    proof.most_scratch = std::max(proof.most_scratch, gpu.chunks[2]);
    for (const ThreadBlock& block : gpu.blocks) {
      proof.longest_block = std::max(proof.longest_block, block.size());
    }
  }
  check_operations(plan, table, counters, proof.flaws);
  const PlanOrder order = order_of(table, counters);
  if (!order.stuck.empty()) {
    proof.flaws.push_back(deadlock(plan, table, counters, order));
  } else {
    check_counts(plan, counters, order, proof.flaws);
  }
  Schedule shape = shape_of(plan);
  for (Flaw& flaw : find_hazards(plan, table, counters, order,
                                 executors::BufferContents(shape, plan.in_place))) {
    proof.flaws.push_back(std::move(flaw));
  }
  // If the order is undefined, so are the contents: only the undefined order is reported then.
  std::vector<Flaw> wrong;
  const int roots = is_rooted(plan.collective) ? shape.ranks : 1;
  for (int root = 0; root < roots && proof.flaws.empty() && (root == 0 || !wrong.empty()); ++root) {
    shape.root = root;
    std::vector<Flaw> found = PlanFlow(table, shape, plan.in_place).run(order);
    if (root == 0 || found.size() < wrong.size()) {
      wrong = std::move(found);
      proof.root = root;
    }
  }
  proof.flaws.insert(proof.flaws.end(), wrong.begin(), wrong.end());
  return proof;
}

}  // namespace unisono::mscclpp
