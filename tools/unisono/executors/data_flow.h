// Runs a program on sums of contributions instead of numbers, and tells what is wrong with them.
#pragma once

#include <vector>

#include "executors/contents.h"
#include "executors/flaw.h"
#include "schedule/schedule.h"

namespace unisono::executors {

// `at` is the step that does it, `gpu` and `place` one chunk, which may be of another GPU.
class DataFlow {
 public:
  DataFlow(const Schedule& shape, bool is_in_place)
      : shape_(shape), memory_(shape, is_in_place), is_in_place_(is_in_place) {}

  Value read(const StepId& at, int gpu, const BufferPlace& place);
  void write(const StepId& at, int gpu, const BufferPlace& place, Value value);
  // Null, as what was wrong before is told already, if one of them is, or if they do not go
  // together.
  Value sum(const StepId& at, const Value& one, const Value& other);

  Flaws& flaws() { return flaws_; }
  // All that was wrong, with what is not where the collective wants it.
  std::vector<Flaw> finish() &&;

 private:
  const Schedule& shape_;
  BufferContents memory_;
  bool is_in_place_;
  Flaws flaws_;
};

}  // namespace unisono::executors
