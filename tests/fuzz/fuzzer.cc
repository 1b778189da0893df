// Passes any bytes to the property that the build selects: see PROPERTY_HEADER for its definition.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include PROPERTY_HEADER

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string problem =
      unisono::fuzz::PROPERTY({reinterpret_cast<const char*>(data), size});  // NOLINT: bytes
  if (!problem.empty()) {
    std::fputs(problem.c_str(), stderr);
    std::abort();
  }
  return 0;
}
