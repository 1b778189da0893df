// Names the parts of a time, for texts and tables.
#pragma once

#include <span>
#include <string_view>

#include "planner/serving.h"
#include "planner/training.h"

namespace unisono::planner {

template <typename Parts>
struct NamedPart {
  std::string_view name;
  double Parts::* value;
};

std::span<const NamedPart<StepParts>> step_parts();
std::span<const NamedPart<TokenParts>> token_parts();
std::span<const NamedPart<MemoryParts>> memory_parts();

}  // namespace unisono::planner
