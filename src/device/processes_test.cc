// Tests collectives on device memory between processes, which map each other's memory.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstdio>
#include <optional>

#include "device/testing_driver.h"
#include "device/testing_processes.h"
#include "unisono/device.hpp"

namespace unisono::device {
namespace {

// Uses memory from allocate(), or other memory, which is staged.
int random_calls(Communicator& comm, bool allocated) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  const OwnStream stream;
  DeviceGroup group(comm, {.scratch_bytes = std::size_t{1} << 18});
  const Buffer other_in(kBytes);
  const Buffer other_out(kBytes);
  auto* const in =
      allocated ? static_cast<unsigned char*>(group.allocate(kBytes)) : other_in.data();
  auto* const out =
      allocated ? static_cast<unsigned char*>(group.allocate(kBytes)) : other_out.data();
  std::mt19937_64 random(7);
  for (int k = 0; k < 80; ++k) {
    const std::string wrong =
        run_trial(group, comm, draw(comm.size(), random), in, out, stream.handle());
    if (!wrong.empty()) {
      std::fprintf(stderr, "call %d: %s\n", k, wrong.c_str());
      return 1;
    }
  }
  return 0;
}

TEST(DeviceProcesses, RandomCallsInMemoryOfTheGroupAreRight) {
  for (const int ranks : {2, 3}) {
    EXPECT_EQ(run_processes(ranks, [](Communicator& comm) { return random_calls(comm, true); }),
              std::vector<int>(static_cast<std::size_t>(ranks)));
  }
}

TEST(DeviceProcesses, RandomCallsInOtherMemoryAreRight) {
  for (const int ranks : {2, 3}) {
    EXPECT_EQ(run_processes(ranks, [](Communicator& comm) { return random_calls(comm, false); }),
              std::vector<int>(static_cast<std::size_t>(ranks)));
  }
}

// Makes each driver call fail once, on rank 1 only. Returns 0 if every failure is an error on all
// ranks.
int failing_calls(Communicator& comm) {
  struct Failing {
    const char* name;
    int most;  // number of these calls for one group and one allocation
  };
  const auto fail = driver_function<void(const char*, int)>("fake_cuda_fail");
  const auto left = driver_function<int()>("fake_cuda_left");
  const int before = left();
  for (const Failing& failing :
       std::array{Failing{"cuDeviceGetAttribute", 1}, Failing{"cuMemAlloc_v2", 5},
                  Failing{"cuMemsetD8Async", 5}, Failing{"cuStreamSynchronize", 6},
                  Failing{"cuMemHostAlloc", 1}, Failing{"cuEventCreate", 1},
                  Failing{"cuIpcGetMemHandle", 2}, Failing{"cuIpcOpenMemHandle_v2", 2},
                  Failing{"cuMemcpyHtoDAsync_v2", 1}}) {
    for (int nth = 1; nth <= failing.most; ++nth) {
      fail(comm.rank() == 1 ? failing.name : "", nth);
      std::optional<Error> told;
      try {
        DeviceGroup group(comm);
        group.allocate(1000);
      } catch (const Error& error) {
        told = error;
      }
      fail("", 0);
      const bool by_one = comm.rank() == 1 || (told && told->context().peer == 1);
      if (!told || told->code() == ErrorCode::timeout || !by_one || left() != before) {
        std::fprintf(stderr, "%s, call %d: %s; %d left\n", failing.name, nth,
                     told ? told->what() : "no error", left() - before);
        return 1;
      }
    }
  }
  DeviceGroup group(comm);
  return group.allocate(1000) == nullptr ? 1 : 0;
}

TEST(DeviceProcesses, ACallOfTheDriverThatFailsOnOneRankIsToldToAll) {
  for (const int ranks : {2, 3}) {
    EXPECT_EQ(run_processes(ranks, failing_calls),
              std::vector<int>(static_cast<std::size_t>(ranks)));
  }
}

TEST(DeviceProcesses, AProcessThatIsKilledIsNamed) {
  const std::vector<int> codes = run_processes(3, [](Communicator& comm) {
    DeviceGroup group(comm);
    void* const data = group.allocate(4000);
    const Call call{.collective = Collective::all_reduce,
                    .in = data,
                    .out = data,
                    .count = 1000,
                    .dtype = Dtype::f32};
    group.run(call, nullptr);
    group.synchronize(nullptr);
    try {
      comm.barrier();  // rank 2 may die before the others leave it
      if (comm.rank() == 2) {
        ::raise(SIGKILL);
      }
      group.run(call, nullptr);
      group.synchronize(nullptr);
    } catch (const Error& error) {
      const bool named = error.code() == ErrorCode::peer_lost && error.context().peer == 2;
      if (!named) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      return named ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, -SIGKILL}));
}

}  // namespace
}  // namespace unisono::device
