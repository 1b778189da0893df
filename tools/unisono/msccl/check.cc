#include "msccl/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "executors/contents.h"
#include "executors/data_flow.h"
#include "msccl/hazards.h"
#include "msccl/order.h"

namespace unisono::msccl {
namespace {

using executors::DataFlow;
using executors::Flaw;
using executors::StepId;
using executors::Value;

constexpr std::size_t kMostRoom = 64;

// Moves sums along an order in which the steps can run.
class ProgramFlow {
 public:
  ProgramFlow(const StepTable& table, const Schedule& shape, bool is_in_place)
      : table_(table), flow_(shape, is_in_place), sent_(table.size()) {}

  std::vector<Flaw> run(const Order& order) {
    for (const std::size_t index : order.steps) {
      step(index, order.sent_by[index]);
    }
    return std::move(flow_).finish();
  }

 private:
  void step(std::size_t index, std::size_t sender) {
    const Step& step = table_.step(index);
    const StepTraits& traits = traits_of(step.type);
    const StepId& at = table_.id(index);
    if (traits.receives && table_.step(sender).chunks != step.chunks) {
      const StepId& from = table_.id(sender);
      flow_.flaws().add(
          at,
          fmt::format("receives {} chunks where GPU {}, thread block {}, step {} sends {}",
                      step.chunks, from.gpu, from.block, from.step, table_.step(sender).chunks));
    }
    for (int i = 0; i < step.chunks; ++i) {
      const BufferPlace source{step.source.buffer, step.source.offset + i};
      const BufferPlace target{step.target.buffer, step.target.offset + i};
      Value value = traits.receives ? received(sender, i) : nullptr;
      if (traits.reads_source) {
        const Value own = flow_.read(at, at.gpu, source);
        value = traits.receives ? flow_.sum(at, value, own) : own;
      }
      if (step.type == StepType::reduce) {
        value = flow_.sum(at, value, flow_.read(at, at.gpu, target));
      }
      if (traits.writes_target) {
        flow_.write(at, at.gpu, target, value);
      }
      if (traits.sends) {
        sent_[index].push_back(value);
      }
    }
  }

  Value received(std::size_t sender, int i) const {
    const std::vector<Value>& values = sent_[sender];
    return static_cast<std::size_t>(i) < values.size() ? values[static_cast<std::size_t>(i)]
                                                       : nullptr;
  }

  const StepTable& table_;
  DataFlow flow_;
  std::vector<std::vector<Value>> sent_;
};

// "step 1 of thread block 2 of GPU 0".
std::string describe(const StepTable& table, std::size_t index) {
  const StepId& at = table.id(index);
  return fmt::format("step {} of thread block {} of GPU {}", at.step, at.block, at.gpu);
}

// Follows the chain of waits from a step that cannot run, until the chain returns to itself or
// ends.
Flaw deadlock(const MscclProgram& program, const StepTable& table, const Order& order) {
  std::vector<std::size_t> next(table.blocks(), StepTable::none());
  for (const std::size_t index : order.stuck) {
    next[table.block_number(index)] = index;
  }
  const std::set<std::size_t> done(order.steps.begin(), order.steps.end());
  std::vector<std::string> chain;
  std::set<std::size_t> seen;
  std::size_t at = order.stuck.front();
  while (seen.insert(at).second) {
    const StepId& id = table.id(at);
    const std::size_t on = table.awaited(at);
    const ThreadBlock& block = table.block(at);
    if (on != StepTable::none() && !done.contains(on)) {
      chain.push_back(fmt::format("{} waits for {}", describe(table, at), describe(table, on)));
      at = next[table.block_number(on)];
      continue;
    }
    chain.push_back(fmt::format("{} waits for GPU {} to send on channel {}", describe(table, at),
                                block.receive, block.channel));
    const auto& blocks = program.gpus[static_cast<std::size_t>(block.receive)].blocks;
    const auto sender = std::find_if(blocks.begin(), blocks.end(), [&](const ThreadBlock& one) {
      return one.send == id.gpu && one.channel == block.channel;
    });
    const std::size_t number =
        table.block_number({block.receive, static_cast<int>(sender - blocks.begin()), 0});
    if (next[number] == StepTable::none()) {
      chain.push_back("which sends nothing more");
      break;
    }
    at = next[number];
  }
  std::string text = "deadlock: ";
  for (std::size_t i = 0; i < chain.size(); ++i) {
    text += (i == 0 ? "" : "; ") + chain[i];
  }
  return {.text = std::move(text)};
}

void check_messages_left(const StepTable& table, const Order& order, std::vector<Flaw>& flaws) {
  const std::set<std::size_t> taken(order.sent_by.begin(), order.sent_by.end());
  for (const std::size_t index : order.steps) {
    if (traits_of(table.step(index).type).sends && !taken.contains(index)) {
      flaws.push_back({table.id(index), "sends data that no thread block receives"});
    }
  }
}

void check_told(const StepTable& table, std::vector<Flaw>& flaws) {
  for (std::size_t index = 0; index < table.size(); ++index) {
    const std::size_t on = table.awaited(index);
    if (on != StepTable::none() && !table.step(on).tells) {
      const StepId& at = table.id(index);
      flaws.push_back(
          {at, fmt::format("waits for ever: neither {} nor a later step has hasdep=\"1\"",
                           describe(table, table.index({at.gpu, table.step(index).depends_on_block,
                                                        table.step(index).depends_on_step})))});
    }
  }
}

std::size_t least_room(const MscclProgram& program, const StepTable& table) {
  std::size_t room = 1;
  while (room < kMostRoom && !order_of(program, table, room).stuck.empty()) {
    ++room;
  }
  return room;
}

}  // namespace

Proof check(const MscclProgram& program) {
  const StepTable table(program);
  const Schedule shape = shape_of(program);
  Proof proof;
  for (const Gpu& gpu : program.gpus) {
    for (const ThreadBlock& block : gpu.blocks) {
      proof.longest_block = std::max(proof.longest_block, block.steps.size());
    }
  }
  check_told(table, proof.flaws);
  const Order order = order_of(program, table, 0);
  if (!order.stuck.empty()) {
    proof.flaws.push_back(deadlock(program, table, order));
  } else {
    proof.room = least_room(program, table);
    check_messages_left(table, order, proof.flaws);
  }
  for (const bool is_in_place : {false, true}) {
    if (is_in_place ? !program.in_place : !program.out_of_place) {
      continue;
    }
    // If the order is undefined, so are the contents: only the undefined order is reported then.
    std::vector<Flaw> found =
        find_hazards(program, table, order, executors::BufferContents(shape, is_in_place));
    if (found.empty() && order.stuck.empty()) {
      found = ProgramFlow(table, shape, is_in_place).run(order);
    }
    for (Flaw& flaw : found) {
      if (program.in_place && program.out_of_place) {
        flaw.text += is_in_place ? " (in place)" : " (out of place)";
      }
      proof.flaws.push_back(std::move(flaw));
    }
  }
  return proof;
}

}  // namespace unisono::msccl
