// A rank that uses most features: small_job [ROUNDS]. Prints in one line how it ended, and exits
// with 0 (right), 1 (a wrong result) or 3 (an error).
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"

extern "C" void arm_failures() __attribute__((weak));

namespace {

using unisono::Communicator;

bool all_are(std::span<const float> data, float value) {
  for (const float one : data) {
    if (one != value) {
      return false;
    }
  }
  return true;
}

bool communicate(Communicator& comm, std::size_t count) {
  const auto ranks = static_cast<float>(comm.size());
  std::vector<float> data(count, 1.0F);
  comm.all_reduce(std::span(data), unisono::sum);
  bool right = all_are(data, ranks);
  std::vector<float> all(count * static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::span<const float>(data), std::span(all));
  right = right && all_are(all, ranks);
  unisono::Request request = comm.all_reduce_async(std::span(data), unisono::sum);
  request.wait();
  return right && all_are(data, ranks * ranks);
}

int work(int rounds) {
  if (arm_failures != nullptr) {
    arm_failures();
  }
  Communicator world = Communicator::connect({});
  bool right = true;
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t count : {1U, 1000U, 300'000U}) {
      right = communicate(world, count) && right;
    }
    Communicator half = world.split(world.rank() % 2, 0);
    right = communicate(half, 100) && right;
  }
  world.barrier();
  std::puts(right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return work(argc > 1 ? std::atoi(argv[1]) : 1);
  } catch (const unisono::Error& error) {
    std::printf("error[%s]: %s\n", std::string(unisono::to_string(error.code())).c_str(),
                error.what());
  } catch (const std::bad_alloc&) {
    std::puts("bad_alloc");
  }
  return 3;
}
