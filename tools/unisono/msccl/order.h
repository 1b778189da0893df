// Runs a program without data, to find a possible order of its steps and the sends that match its
// receives.
#pragma once

#include <cstddef>
#include <vector>

#include "executors/steps.h"
#include "msccl/program.h"

namespace unisono::msccl {

// The steps of a program with their numbers.
class StepTable : public executors::StepNumbers {
 public:
  explicit StepTable(const MscclProgram& program);

  const Step& step(std::size_t index) const;
  const ThreadBlock& block(std::size_t index) const;
  // Returns the step whose end starts `index`; none(): it depends on no step. A block reports its
  // progress only at steps with `tells`, so this may be a later step than the named one.
  std::size_t awaited(std::size_t index) const;

 private:
  const MscclProgram& program_;
};

struct Order {
  std::vector<std::size_t> steps;    // the steps that could run, in a possible order
  std::vector<std::size_t> stuck;    // the next step of each blocked thread block
  std::vector<std::size_t> sent_by;  // for each step that received: the step that sent
};

// `room`: the number of messages that a connection holds before its sender waits; 0: unlimited.
Order order_of(const MscclProgram& program, const StepTable& table, std::size_t room);

}  // namespace unisono::msccl
