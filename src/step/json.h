// Steps as JSON, `unisono.step/1`; docs/formats/step.md describes the format.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "step/step.h"

namespace unisono::step {

inline constexpr std::string_view kStepFormat = "unisono.step/1";

std::string to_json(const Step& step);
// problem_of() is empty for every returned step. The position of a failure is a JSON pointer.
Parsed<Step> parse_step_json(std::string_view text);

}  // namespace unisono::step
