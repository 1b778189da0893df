// Any bytes, read as a topology and as a workload: see topology_json_property.h for what must hold.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "topology_json_property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string problem = unisono::fuzz::topology_json_property(
      {reinterpret_cast<const char*>(data), size});  // NOLINT: bytes as text
  if (!problem.empty()) {
    std::fputs(problem.c_str(), stderr);
    std::abort();
  }
  return 0;
}
