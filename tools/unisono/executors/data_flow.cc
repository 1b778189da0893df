#include "executors/data_flow.h"

#include <fmt/format.h>

#include <utility>

#include "schedule/cells.h"

namespace unisono::executors {
namespace {

// "input chunk 3 of GPU 1"; leaves the GPU out if it is the step's own GPU.
std::string told(const StepId& at, int gpu, const BufferPlace& place) {
  return fmt::format("{} chunk {}{}", to_string(place.buffer), place.offset,
                     gpu == at.gpu ? "" : fmt::format(" of GPU {}", gpu));
}

}  // namespace

Value DataFlow::read(const StepId& at, int gpu, const BufferPlace& place) {
  Value value = memory_.at(memory_.cell(gpu, place));
  if (value == nullptr) {
    flaws_.add(at,
               fmt::format("reads {}, where nothing has been written yet", told(at, gpu, place)));
  }
  return value;
}

void DataFlow::write(const StepId& at, int gpu, const BufferPlace& place, Value value) {
  if (place.buffer == Buffer::input && !is_in_place_) {
    flaws_.add(at, fmt::format("writes {}, which is the caller's input out of place",
                               told(at, gpu, place)));
  }
  memory_.set(memory_.cell(gpu, place), std::move(value));
}

Value DataFlow::sum(const StepId& at, const Value& one, const Value& other) {
  if (one == nullptr || other == nullptr) {
    return nullptr;
  }
  if (one->chunk != other->chunk) {
    flaws_.add(at, fmt::format("adds {} to {}", to_text(*one), to_text(*other)));
    return nullptr;
  }
  return sum_of(*one, *other);
}

std::vector<Flaw> DataFlow::finish() && {
  add_wrong_outputs(memory_, shape_, flaws_);
  return std::move(flaws_).take();
}

}  // namespace unisono::executors
