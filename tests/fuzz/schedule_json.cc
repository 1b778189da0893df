// Any bytes, read as a schedule in JSON: parsed or refused, never a crash; what is parsed and small
// goes through the verifier, and comes back the same after it was written.
#include "schedule/json.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "schedule/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = unisono::parse_schedule_json(text);
  if (!parsed.value) {
    return 0;
  }
  const unisono::Schedule& schedule = *parsed.value;
  const auto again = unisono::parse_schedule_json(unisono::to_json(schedule));
  if (!again.value || again.value->moves != schedule.moves) {
    std::abort();
  }
  if (schedule.ranks <= 16 && schedule.chunks <= 256 && schedule.steps <= 256) {
    (void)unisono::verify(schedule);
  }
  return 0;
}
