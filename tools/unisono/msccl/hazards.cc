#include "msccl/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "schedule/cells.h"

namespace unisono::msccl {
namespace {

using executors::BufferContents;
using executors::Flaws;
using executors::StepId;

// Returns true for a copy of a place onto itself: in place, a copy from the input to the output can
// be one.
bool is_onto_itself(const Step& step, int gpu, const BufferContents& memory) {
  return step.type == StepType::copy &&
         memory.cell(gpu, step.source) == memory.cell(gpu, step.target);
}

class OneGpu {
 public:
  OneGpu(int gpu, const MscclProgram& program, const StepTable& table, const Order& order,
         const BufferContents& memory)
      : gpu_(gpu),
        table_(table),
        order_(order),
        memory_(memory),
        width_(program.gpus[static_cast<std::size_t>(gpu)].blocks.size()),
        clocks_(table.size() * width_, -1) {}

  void run(Flaws& flaws) {
    std::vector<std::size_t> last(table_.blocks(), StepTable::none());
    for (const std::size_t index : order_.steps) {
      const StepId& at = table_.id(index);
      std::size_t& before = last[table_.block_number(index)];
      take(index, before);
      take(index, table_.awaited(index));
      take(index, order_.sent_by[index]);
      before = index;
      if (at.gpu == gpu_) {
        clock(index)[static_cast<std::size_t>(at.block)] = at.step;
        visit(index, flaws);
      }
    }
  }

 private:
  struct Accesses {
    std::size_t write = StepTable::none();
    std::vector<std::size_t> reads;  // since the last write
  };

  int* clock(std::size_t index) { return clocks_.data() + index * width_; }

  void take(std::size_t index, std::size_t before) {
    if (before == StepTable::none()) {
      return;
    }
    const int* from = clock(before);
    std::transform(from, from + width_, clock(index), clock(index),
                   [](int one, int other) { return std::max(one, other); });
  }

  void visit(std::size_t index, Flaws& flaws) {
    const Step& step = table_.step(index);
    const StepTraits& traits = traits_of(step.type);
    if (is_onto_itself(step, gpu_, memory_)) {
      return;
    }
    for (int i = 0; traits.reads_source && i < step.chunks; ++i) {
      read(index, {step.source.buffer, step.source.offset + i}, flaws);
    }
    for (int i = 0; traits.writes_target && i < step.chunks; ++i) {
      write(index, {step.target.buffer, step.target.offset + i}, flaws);
    }
  }

  void read(std::size_t index, const BufferPlace& place, Flaws& flaws) {
    Accesses& before = accesses_[memory_.cell(gpu_, place)];
    check(index, before.write, "reads", "writes", place, flaws);
    before.reads.push_back(index);
  }

  void write(std::size_t index, const BufferPlace& place, Flaws& flaws) {
    Accesses& before = accesses_[memory_.cell(gpu_, place)];
    check(index, before.write, "writes", "writes", place, flaws);
    for (const std::size_t read : before.reads) {
      check(index, read, "writes", "reads", place, flaws);
    }
    before = {.write = index, .reads = {}};
  }

  void check(std::size_t index, std::size_t before, const char* does, const char* did,
             const BufferPlace& place, Flaws& flaws) {
    if (before == StepTable::none() || before == index || flaws.is_full()) {
      return;
    }
    const StepId& first = table_.id(before);
    if (clock(index)[static_cast<std::size_t>(first.block)] >= first.step) {
      return;
    }
    flaws.add(
        table_.id(index),
        fmt::format("{} {} chunk {}, which step {} of thread block {} {}: their order is undefined",
                    does, to_string(place.buffer), place.offset, first.step, first.block, did));
  }

  int gpu_;
  const StepTable& table_;
  const Order& order_;
  const BufferContents& memory_;
  std::size_t width_;
  std::vector<int> clocks_;  // by step: the last step of each block of this GPU before it
  std::unordered_map<std::uint64_t, Accesses> accesses_;
};

}  // namespace

std::vector<executors::Flaw> find_hazards(const MscclProgram& program, const StepTable& table,
                                          const Order& order, const BufferContents& memory) {
  Flaws flaws;
  for (std::size_t gpu = 0; gpu < program.gpus.size(); ++gpu) {
    OneGpu(static_cast<int>(gpu), program, table, order, memory).run(flaws);
  }
  return std::move(flaws).take();
}

}  // namespace unisono::msccl
