// A user's first program, in a world of one rank. It is built against the installed library in
// several ways.
#include <array>
#include <cstdio>
#include <span>
#include <string_view>
#include <unisono/unisono.hpp>
#include <vector>

namespace {

int failures = 0;

void expect(bool right, const char* what) {
  if (!right) {
    std::fprintf(stderr, "consumer: wrong: %s\n", what);
    ++failures;
  }
}

void collectives(unisono::Communicator& comm) {
  std::vector<float> data{1.0F, 2.0F, 3.0F};
  comm.all_reduce(data, unisono::sum);
  comm.broadcast(std::span(data).first<3>(), 0);
  expect(data == std::vector{1.0F, 2.0F, 3.0F}, "all_reduce and broadcast of one rank");

  std::vector<float> out(3);
  comm.all_gather_async(data, out).wait();
  expect(out == data, "all_gather_async");
  comm.barrier();
}

// Thrown inside the library and caught outside: both must use the same type.
void errors(unisono::Communicator& comm) {
  std::array<float, 3> data{};
  try {
    comm.broadcast(data, 7);
    expect(false, "a root that does not exist is refused");
  } catch (const unisono::Error& error) {
    expect(error.code() == unisono::ErrorCode::usage, "its code is usage");
    expect(std::string_view(error.what()).starts_with("usage: "), "its text says usage");
  }
}

}  // namespace

int main() {
  expect(unisono::to_string(unisono::Dtype::bf16) == "bf16", "the name of bf16");
  auto comm = unisono::Communicator::connect();
  expect(comm.rank() == 0 && comm.size() == 1, "alone in the world");
  collectives(comm);
  errors(comm);
  if (failures == 0) {
    std::puts("consumer: right");
  }
  return failures == 0 ? 0 : 1;
}
