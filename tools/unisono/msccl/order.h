// Runs a program without data: in which order its steps can go, and what meets what.
#pragma once

#include <cstddef>
#include <vector>

#include "msccl/program.h"

namespace unisono::msccl {

// All steps of a program, numbered through.
class StepTable {
 public:
  explicit StepTable(const MscclProgram& program);

  struct Id {
    int gpu = 0;
    int block = 0;
    int step = 0;
  };
  std::size_t size() const { return ids_.size(); }
  Id id(std::size_t index) const { return ids_[index]; }
  std::size_t index(Id id) const;
  const Step& step(std::size_t index) const;
  const ThreadBlock& block(std::size_t index) const;
  // The block of a step, numbered through all GPUs.
  std::size_t block_number(Id id) const;
  std::size_t blocks() const { return first_.size(); }
  // The step whose end makes `index` start, none(): it depends on none. A block tells of its steps
  // only where a step `tells`, so that it may be a later one than the one that is named.
  std::size_t awaited(std::size_t index) const;
  static constexpr std::size_t none() { return static_cast<std::size_t>(-1); }

 private:
  const MscclProgram& program_;
  std::vector<Id> ids_;
  std::vector<std::size_t> first_;         // step of each block
  std::vector<std::size_t> first_blocks_;  // of each GPU
};

struct Order {
  std::vector<std::size_t> steps;    // that could run, in an order in which they can
  std::vector<std::size_t> stuck;    // the next step of each block that could not
  std::vector<std::size_t> sent_by;  // for each step that received: the step that sent
};

// `room`: how many messages a connection holds before its sender waits; 0: any number.
Order order_of(const MscclProgram& program, const StepTable& table, std::size_t room);

}  // namespace unisono::msccl
