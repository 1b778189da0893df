// The property of any bytes given to the parser of steps.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "step/json.h"
#include "step/memory.h"
#include "step/problem.h"
#include "step/verify.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure.
inline std::string step_property(std::string_view text) {
  const Parsed<step::Step> parsed = step::parse_step_json(text);
  if (!parsed) {
    return parsed.message.empty() ? "refused without a message" : "";
  }
  const step::Step& taken = *parsed.value;
  if (!step::problem_of(taken).empty()) {
    return "taken, but not right";
  }
  const std::string written = to_json(taken);
  const Parsed<step::Step> again = step::parse_step_json(written);
  if (!again) {
    return "not read back: " + again.position + ": " + again.message;
  }
  if (to_json(*again.value) != written) {
    return "not the same when read back";
  }
  const std::vector<step::Finding> findings = verify(taken);
  for (const step::Finding& finding : findings) {
    if (to_text(finding).empty()) {
      return "a finding without words";
    }
  }
  if (findings.empty()) {
    for (const step::Memory& memory : memory_of(taken)) {
      if (!std::isfinite(memory.total()) || memory.total() < 0) {
        return "right, and its memory is not a number";
      }
    }
  }
  return "";
}

}  // namespace unisono::fuzz
