// What a user's first program does. It is built against the installed library in three ways.
#include <cstdio>
#include <string>
#include <unisono/unisono.hpp>

int main() {
  const auto dtype = unisono::parse_dtype("bf16");
  if (!dtype || unisono::to_string(*dtype) != "bf16") {
    std::fputs("consumer: bf16 is not a data type\n", stderr);
    return 1;
  }
  // Thrown and caught on this side of the library's border, and described on the other.
  try {
    throw unisono::Error(unisono::ErrorCode::usage, "consumer");
  } catch (const unisono::Error& error) {
    if (std::string(error.what()) != "usage: consumer") {
      std::fprintf(stderr, "consumer: unexpected text '%s'\n", error.what());
      return 1;
    }
  }
  std::puts("consumer: right");
  return 0;
}
