// The tables in src/planner/stacks/, which the build converts to text in the library.
#pragma once

#include <span>
#include <string_view>

namespace unisono::planner {

std::span<const std::string_view> stack_tables();

}  // namespace unisono::planner
