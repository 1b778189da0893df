#include "msccl/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "msccl/hazards.h"
#include "msccl/memory.h"
#include "msccl/order.h"

namespace unisono::msccl {
namespace {

constexpr std::size_t kMostFlaws = 100;
constexpr std::size_t kMostRoom = 64;

std::string name_of(Buffer buffer) {
  return buffer == Buffer::input ? "input" : buffer == Buffer::output ? "output" : "scratch";
}

// Moves sums along an order in which the steps can run.
class DataFlow {
 public:
  DataFlow(const StepTable& table, const Schedule& shape, bool is_in_place)
      : table_(table),
        shape_(shape),
        memory_(shape, is_in_place),
        is_in_place_(is_in_place),
        sent_(table.size()) {}

  std::vector<Flaw> run(const Order& order) {
    for (const std::size_t index : order.steps) {
      step(index, order.sent_by[index]);
    }
    for (Flaw& flaw : wrong_outputs(memory_, shape_, kMostFlaws - flaws_.size())) {
      flaws_.push_back(std::move(flaw));
    }
    return std::move(flaws_);
  }

 private:
  void blame(std::size_t index, std::string text) {
    if (flaws_.size() < kMostFlaws) {
      const StepTable::Id at = table_.id(index);
      flaws_.push_back({at.gpu, at.block, at.step, std::move(text)});
    }
  }

  void step(std::size_t index, std::size_t sender) {
    const Step& step = table_.step(index);
    const StepTraits& traits = traits_of(step.type);
    const int rank = table_.id(index).gpu;
    if (traits.receives && table_.step(sender).chunks != step.chunks) {
      const StepTable::Id at = table_.id(sender);
      blame(index, fmt::format("receives {} chunks where GPU {}, thread block {}, step {} sends {}",
                               step.chunks, at.gpu, at.block, at.step, table_.step(sender).chunks));
    }
    for (int i = 0; i < step.chunks; ++i) {
      Value value = traits.receives ? received(sender, i) : nullptr;
      if (traits.reads_source) {
        value = combine(index, value, read(index, rank, step.source, i), traits.receives);
      }
      if (step.type == StepType::reduce) {
        value = combine(index, value, read(index, rank, step.target, i), true);
      }
      if (traits.writes_target) {
        write(index, rank, {step.target.buffer, step.target.offset + i}, value);
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

  Value read(std::size_t index, int rank, BufferPlace place, int i) {
    place.offset += i;
    Value value = memory_.at(memory_.cell(rank, place));
    if (value == nullptr) {
      blame(index, fmt::format("reads {} chunk {}, where nothing is yet", name_of(place.buffer),
                               place.offset));
    }
    return value;
  }

  Value combine(std::size_t index, const Value& one, const Value& other, bool is_sum) {
    if (!is_sum || one == nullptr || other == nullptr) {
      return is_sum ? nullptr : other;
    }
    if (one->chunk != other->chunk) {
      blame(index, fmt::format("adds {} to {}", to_text(*one), to_text(*other)));
      return nullptr;
    }
    return sum_of(*one, *other);
  }

  void write(std::size_t index, int rank, const BufferPlace& place, const Value& value) {
    if (place.buffer == Buffer::input && !is_in_place_) {
      blame(index,
            fmt::format("writes input chunk {}, which out of place is the caller's", place.offset));
    }
    memory_.set(memory_.cell(rank, place), value);
  }

  const StepTable& table_;
  const Schedule& shape_;
  BufferContents memory_;
  bool is_in_place_;
  std::vector<std::vector<Value>> sent_;
  std::vector<Flaw> flaws_;
};

// "step 1 of thread block 2 of GPU 0 (receive from GPU 1)".
std::string describe(const StepTable& table, std::size_t index) {
  const StepTable::Id at = table.id(index);
  return fmt::format("step {} of thread block {} of GPU {}", at.step, at.block, at.gpu);
}

// The chain of waits from a step that cannot run, until it comes back to itself or ends.
Flaw deadlock(const MscclProgram& program, const StepTable& table, const Order& order) {
  std::vector<std::size_t> next(table.blocks(), StepTable::none());
  for (const std::size_t index : order.stuck) {
    next[table.block_number(table.id(index))] = index;
  }
  const std::set<std::size_t> done(order.steps.begin(), order.steps.end());
  std::vector<std::string> chain;
  std::set<std::size_t> seen;
  std::size_t at = order.stuck.front();
  while (seen.insert(at).second) {
    const StepTable::Id id = table.id(at);
    const std::size_t on = table.awaited(at);
    const ThreadBlock& block = table.block(at);
    if (on != StepTable::none() && !done.contains(on)) {
      chain.push_back(fmt::format("{} waits for {}", describe(table, at), describe(table, on)));
      at = next[table.block_number(table.id(on))];
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
      chain.push_back("which has no more to send");
      break;
    }
    at = next[number];
  }
  std::string text = "nothing can go on: ";
  for (std::size_t i = 0; i < chain.size(); ++i) {
    text += (i == 0 ? "" : "; ") + chain[i];
  }
  return {.text = std::move(text)};
}

void check_messages_left(const StepTable& table, const Order& order, std::vector<Flaw>& flaws) {
  const std::set<std::size_t> taken(order.sent_by.begin(), order.sent_by.end());
  for (const std::size_t index : order.steps) {
    if (traits_of(table.step(index).type).sends && !taken.contains(index)) {
      const StepTable::Id at = table.id(index);
      flaws.push_back({at.gpu, at.block, at.step, "sends what nobody receives"});
    }
  }
}

void check_told(const StepTable& table, std::vector<Flaw>& flaws) {
  for (std::size_t index = 0; index < table.size(); ++index) {
    const std::size_t on = table.awaited(index);
    if (on != StepTable::none() && !table.step(on).tells) {
      const StepTable::Id at = table.id(index);
      flaws.push_back(
          {at.gpu, at.block, at.step,
           fmt::format("waits for ever: neither {} nor a later one has hasdep=\"1\"",
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

std::string to_text(const Flaw& flaw) {
  return flaw.gpu < 0 ? flaw.text
                      : fmt::format("GPU {}, thread block {}, step {}: {}", flaw.gpu, flaw.block,
                                    flaw.step, flaw.text);
}

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
    // Where the order is open, so is what lies where: only the open order is told then.
    std::vector<Flaw> found =
        find_hazards(program, table, order, BufferContents(shape, is_in_place));
    if (found.empty() && order.stuck.empty()) {
      found = DataFlow(table, shape, is_in_place).run(order);
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
