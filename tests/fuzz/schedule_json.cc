// Any bytes, read as a schedule in JSON: see schedule_json_property.h for what must hold.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "schedule_json_property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string problem = unisono::fuzz::schedule_json_property(
      {reinterpret_cast<const char*>(data), size});  // NOLINT: bytes as text
  if (!problem.empty()) {
    std::fputs(problem.c_str(), stderr);
    std::abort();
  }
  return 0;
}
