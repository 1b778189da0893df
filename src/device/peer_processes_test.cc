// Tests collectives between devices whose ranks are processes, which may number the devices
// differently.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/testing_sanitizers.h"
#include "device/testing_driver.h"
#include "device/testing_processes.h"
#include "unisono/device.hpp"

namespace unisono::device {
namespace {

// The devices that a process sees, and the device that the rank uses.
struct Own {
  std::string visible = {};
  int device = 0;
};

int peer_calls(Communicator& comm, int device, bool allocated) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  const OnDevice own(device);
  const OwnStream stream;
  DeviceGroup group(comm, {.device = device, .scratch_bytes = std::size_t{1} << 18});
  const Buffer other_in(kBytes);
  const Buffer other_out(kBytes);
  auto* const in =
      allocated ? static_cast<unsigned char*>(group.allocate(kBytes)) : other_in.data();
  auto* const out =
      allocated ? static_cast<unsigned char*>(group.allocate(kBytes)) : other_out.data();
  std::mt19937_64 random(11);
  for (int k = 0; k < 40; ++k) {
    const std::string wrong =
        run_trial(group, comm, draw(comm.size(), random), in, out, stream.handle());
    if (!wrong.empty() || current_context() != own.context()) {
      std::fprintf(stderr, "call %d: %s\n", k, wrong.empty() ? "another context" : wrong.c_str());
      return 1;
    }
  }
  return 0;
}

// Makes random calls on the group's memory and on other memory, and checks the results.
void expect_right(const std::vector<Own>& owns, const std::string& what) {
  for (const bool allocated : {true, false}) {
    const auto codes =
        run_processes(static_cast<int>(owns.size()), [&owns, allocated](Communicator& comm) {
          const Own& own = owns[static_cast<std::size_t>(comm.rank())];
          see_devices(own.visible);
          return peer_calls(comm, own.device, allocated);
        });
    EXPECT_EQ(codes, std::vector<int>(owns.size())) << what << ", allocated " << allocated;
  }
}

TEST(DevicePeerProcesses, RandomCallsAreRight) {
  expect_right({{"0,1", 0}, {"0,1", 1}}, "2 devices");
  expect_right({{"0,1,2", 0}, {"0,1,2", 1}, {"0,1,2", 2}}, "3 devices");
  expect_right({{"0,1,2,3", 3}, {"0,1,2,3", 2}, {"0,1,2,3", 1}, {"0,1,2,3", 0}}, "4 devices");
}

TEST(DevicePeerProcesses, RandomCallsAreRightWhereTheyCountDevicesOtherwise) {
  expect_right({{"0", 0}, {"1", 0}}, "each sees its own alone");
  expect_right({{"2,1", 1}, {"1,2", 1}, {"3", 0}}, "in another order");
  expect_right({{"0,1", 1}, {"1,0", 0}, {"1", 0}}, "one device by other numbers");
}

TEST(DevicePeerProcesses, RandomCallsAreRightWhereProcessesHaveSeveralDevices) {
  if (kThreadSanitizer) {
    GTEST_SKIP()
        << "ThreadSanitizer does not see that another process has ordered what two threads "
           "of this one do; other builds run it";
  }
  for (const bool allocated : {true, false}) {
    const auto codes = run_processes(
        4, [allocated](Communicator& comm) { return peer_calls(comm, comm.rank() % 2, allocated); },
        2, [](int process) { see_devices(process == 0 ? "0,1" : "2,1"); });
    EXPECT_EQ(codes, std::vector<int>(2)) << "allocated " << allocated;
  }
}

// Checks that creating a group fails on all ranks with `summary`, and that ranks other than `from`
// name `from`.
int expect_error(Communicator& comm, const DeviceOptions& options, int from,
                 const std::string& summary) {
  const Error error = error_of([&] { const DeviceGroup group(comm, options); });
  const std::string expected =
      (comm.rank() == from || from < 0 ? std::string()
                                       : "rank " + std::to_string(from) + " says: ") +
      summary;
  comm.barrier();
  if (error.summary() != expected || driver_function<int()>("fake_cuda_left")() != 0) {
    std::fprintf(stderr, "rank %d: %s\n", comm.rank(), error.what());
    return 1;
  }
  return 0;
}

TEST(DevicePeerProcesses, ADeviceThatDoesNotReachAnotherIsToldToAll) {
  const auto codes = run_processes(3, [](Communicator& comm) {
    const std::array devices = {"0", "1", "2"};
    see_devices(devices[static_cast<std::size_t>(comm.rank())], "1>2");
    return expect_error(comm, {}, 1,
                        "device 0 of rank 1 cannot reach the memory of device 0 of rank 2: "
                        "cuIpcOpenMemHandle failed: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED");
  });
  EXPECT_EQ(codes, std::vector<int>(3));
}

// Both ranks use one device: 8 processors with room for 2 blocks each, so 8 blocks per rank.
TEST(DevicePeerProcesses, ADeviceIsTheSameByWhateverNumber) {
  const auto codes = run_processes(2, [](Communicator& comm) {
    see_devices(comm.rank() == 0 ? "0,1" : "1,0");
    return expect_error(comm, {.device = comm.rank(), .channels = 9}, -1,
                        "rank 0 requests 9 channels, but its device has room for 8 per rank");
  });
  EXPECT_EQ(codes, std::vector<int>(2));
}

// Device 1 has room for 8 blocks, and one rank uses it.
TEST(DevicePeerProcesses, TheSameNumberMayBeTwoDevices) {
  const auto codes = run_processes(2, [](Communicator& comm) {
    see_devices(comm.rank() == 0 ? "0" : "1");
    const DeviceGroup group(comm, {.channels = 8});
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>(2));
}

}  // namespace
}  // namespace unisono::device
