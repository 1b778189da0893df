// The property of any bytes given to the schedule parser.
#pragma once

#include <string>
#include <string_view>

#include "schedule/json.h"
#include "schedule/verify.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure: a refusal states the mistake
// and its place; an accepted schedule can be verified, and survives being written and read again.
inline std::string schedule_json_property(std::string_view text) {
  const Parsed<Schedule> parsed = parse_schedule_json(text);
  if (!parsed) {
    return parsed.message.empty() || parsed.position.empty() ? "refused without message or position"
                                                             : "";
  }
  constexpr int kMostChunks = 1 << 16;  // with more, verify may take seconds
  if (parsed.value->chunks <= kMostChunks) {
    (void)verify(*parsed.value);
    (void)verify_in_place(*parsed.value);
  }
  const std::string written = to_json(*parsed.value);
  const Parsed<Schedule> again = parse_schedule_json(written);
  if (!again) {
    return "not read back: " + again.position + ": " + again.message;
  }
  return to_json(*again.value) == written ? "" : "not the same when read back";
}

}  // namespace unisono::fuzz
