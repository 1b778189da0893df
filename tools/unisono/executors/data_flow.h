// Runs a program on sums of contributions instead of numbers, and reports its mistakes.
#pragma once

#include <vector>

#include "executors/contents.h"
#include "executors/flaw.h"
#include "schedule/schedule.h"

namespace unisono::executors {

// `at` is the step, `gpu` and `place` are one chunk, which may belong to another GPU.
class DataFlow {
 public:
  DataFlow(const Schedule& shape, bool is_in_place)
      : shape_(shape), memory_(shape, is_in_place), is_in_place_(is_in_place) {}

  Value read(const StepId& at, int gpu, const BufferPlace& place);
  void write(const StepId& at, int gpu, const BufferPlace& place, Value value);
  // Returns null if an argument is null, because that mistake has been reported, or if they cannot
  // be added.
  Value sum(const StepId& at, const Value& one, const Value& other);

  Flaws& flaws() { return flaws_; }
  // Returns all mistakes, including the chunks that are not where the collective requires them.
  std::vector<Flaw> finish() &&;

 private:
  const Schedule& shape_;
  BufferContents memory_;
  bool is_in_place_;
  Flaws flaws_;
};

}  // namespace unisono::executors
