// Tests collectives between devices whose ranks are threads of one process, on a driver that needs
// no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "base/testing_sanitizers.h"
#include "device/testing_driver.h"
#include "unisono/device.hpp"

namespace unisono::device {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::string first_devices(int count) {
  std::string list = "0";
  for (int device = 1; device < count; ++device) {
    list += ',' + std::to_string(device);
  }
  return list;
}

Call sum_of(void* data, std::size_t count) {
  return {.collective = Collective::all_reduce,
          .in = data,
          .out = data,
          .count = count,
          .dtype = Dtype::i32};
}

// Several ranks per device share its processors.
TEST(DevicePeers, RandomCallsAreRight) {
  for (const int devices : {2, 3, 4}) {
    for (const int ranks : {devices, 2 * devices}) {
      const VisibleDevices visible(first_devices(devices));
      run_threads(ranks, [&](Communicator& comm) {
        const OnDevice own(comm.rank() % devices);
        const OwnStream stream;
        DeviceGroup group(comm, {.device = comm.rank() % devices, .scratch_bytes = kMiB / 16});
        const Buffer in(4 * kMiB);
        const Buffer out(4 * kMiB);
        std::mt19937_64 random(static_cast<unsigned>(ranks));
        for (int k = 0; k < repetitions(60); ++k) {
          const Trial trial = draw(ranks, random);
          EXPECT_EQ(run_trial(group, comm, trial, in.data(), out.data(), stream.handle()), "")
              << devices << " devices";
        }
      });
    }
  }
}

// Data in memory that other devices cannot reach is staged. Ranks on one device need no staging.
TEST(DevicePeers, RandomCallsInMemoryOfPoolsAreRight) {
  const auto put_in_pool = driver_function<void(std::uint64_t)>("fake_cuda_put_in_pool");
  for (const int devices : {1, 3}) {
    const VisibleDevices visible(first_devices(devices));
    run_threads(3, [&](Communicator& comm) {
      const OnDevice own(comm.rank() % devices);
      const OwnStream stream;
      DeviceGroup group(comm, {.device = comm.rank() % devices, .scratch_bytes = kMiB / 16});
      const Buffer in(4 * kMiB);
      const Buffer out(4 * kMiB);
      put_in_pool(reinterpret_cast<std::uint64_t>(in.data()));
      put_in_pool(reinterpret_cast<std::uint64_t>(out.data()));
      std::mt19937_64 random(5);
      for (int k = 0; k < repetitions(60); ++k) {
        const Trial trial = draw(3, random);
        EXPECT_EQ(run_trial(group, comm, trial, in.data(), out.data(), stream.handle(), false), "")
            << devices << " devices";
      }
    });
  }
}

TEST(DevicePeers, AGraphIsReplayedBetweenDevices) {
  const VisibleDevices visible(first_devices(2));
  run_threads(2, [](Communicator& comm) {
    const OnDevice own(comm.rank());
    const OwnStream one;
    const OwnStream two;
    DeviceGroup group(comm, {.device = comm.rank()});
    auto* const data = static_cast<std::int32_t*>(group.allocate(400));
    std::fill_n(data, 100, 1);
    driver_function<int(void*, int)>("cuStreamBeginCapture_v2")(one.handle(), kOfThread);
    group.run(sum_of(data, 100), one.handle());
    void* graph = nullptr;
    driver_function<int(void*, void**)>("cuStreamEndCapture")(one.handle(), &graph);
    for (int k = 0; k < 4; ++k) {
      driver_function<int(void*, void*)>("cuGraphLaunch")(graph, one.handle());
    }
    group.synchronize(one.handle());
    group.run(sum_of(data, 100), one.handle());
    group.run(sum_of(data, 100), two.handle());  // waits for the previous call
    group.synchronize(two.handle());
    EXPECT_EQ(data[0], 64);
    EXPECT_EQ(data[99], 64);
    driver_function<int(void*)>("cuGraphDestroy")(graph);
  });
}

TEST(DevicePeers, ADeviceThatDoesNotReachAnotherIsToldToAll) {
  const auto left = driver_function<int()>("fake_cuda_left");
  const int before = left();
  const VisibleDevices visible("0,1,2", "1>0");
  run_threads(3, [](Communicator& comm) {
    const Error error =
        error_of([&] { const DeviceGroup group(comm, {.device = (comm.rank() + 1) % 3}); });
    EXPECT_EQ(error.code(), ErrorCode::config) << error.what();
    const std::string summary =
        "device 1 of rank 0 cannot reach the memory of device 0 of rank 2: "
        "cuCtxEnablePeerAccess failed: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED";
    EXPECT_EQ(error.summary(), comm.rank() == 0 ? summary : "rank 0 says: " + summary);
    EXPECT_NE(error.message().find("nvidia-smi topo -p2p r; give the ranks devices that reach each "
                                   "other, or use the communicator on host memory"),
              std::string::npos)
        << error.what();
    comm.barrier();  // the communicator still works
  });
  EXPECT_EQ(left(), before);
}

TEST(DevicePeers, ACallOfTheDriverThatFailsLeavesNothingBehind) {
  const auto fail = driver_function<void(const char*, int)>("fake_cuda_fail");
  const auto left = driver_function<int()>("fake_cuda_left");
  const int before = left();
  const VisibleDevices visible(first_devices(3));
  const auto make = [](Communicator& comm, bool fails) {
    const Error error = error_of([&] { const DeviceGroup group(comm, {.device = comm.rank()}); });
    EXPECT_EQ(error.summary() != "nothing was thrown", fails) << error.what();
    EXPECT_EQ(current_context(), nullptr);
    comm.barrier();
  };
  for (const char* const name : {"cuDeviceGetUuid_v2", "cuDevicePrimaryCtxRetain",
                                 "cuCtxEnablePeerAccess", "cuMemAlloc_v2", "cuEventCreate"}) {
    for (const int nth : {1, 3}) {
      fail(name, nth);
      run_threads(3, [&](Communicator& comm) { make(comm, true); });
      EXPECT_EQ(left(), before) << name;
    }
  }
  for (int nth = 4; nth <= 6; ++nth) {  // calls for a peer's device
    fail(nth == 4 ? "cuDevicePrimaryCtxRetain" : "cuCtxEnablePeerAccess", nth);
    run_threads(3, [&](Communicator& comm) { make(comm, true); });
    EXPECT_EQ(left(), before) << nth;
  }
  fail("", 0);
  run_threads(3, [&](Communicator& comm) { make(comm, false); });
  EXPECT_EQ(left(), before);
}

// Device 2 has 2 processors, hence room for 4 blocks.
TEST(DevicePeers, ChannelsAreThoseThatTheSmallestDeviceHasRoomFor) {
  const VisibleDevices visible(first_devices(3));
  run_threads(3, [](Communicator& comm) {
    const Error error =
        error_of([&] { const DeviceGroup group(comm, {.device = comm.rank(), .channels = 5}); });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(error.summary(),
              "rank 2 requests 5 channels, but its device has room for 4 per rank");
    const OnDevice own(comm.rank());
    const OwnStream stream;
    for (const int channels : {0, 4}) {
      DeviceGroup group(comm, {.device = comm.rank(), .channels = channels});
      const Buffer memory(4 * kMiB);
      auto* const data = reinterpret_cast<std::int32_t*>(memory.data());
      std::fill_n(data, kMiB, 1);
      group.run(sum_of(data, kMiB), stream.handle());
      group.synchronize(stream.handle());
      EXPECT_TRUE(std::all_of(data, data + kMiB, [](std::int32_t sum) { return sum == 3; }));
    }
  });
}

TEST(DevicePeers, MemoryOfAnotherDeviceIsNamed) {
  const VisibleDevices visible(first_devices(3));
  run_threads(2, [](Communicator& comm) {
    DeviceGroup group(comm, {.device = comm.rank()});
    const OnDevice own(comm.rank());
    const Buffer here(64);
    const auto there = [] {
      const OnDevice other(2);
      return std::make_unique<Buffer>(64);
    }();
    Call call = sum_of(here.data(), 16);
    call.out = there->data();
    const std::string own_device = std::to_string(comm.rank());
    const Error error = error_of([&] { group.run(call, nullptr); });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(error.summary(), "out is memory of device 2, and the group of rank " + own_device +
                                   " is on device " + own_device);
    call.in = there->data();
    EXPECT_NE(
        error_of([&] { group.run(call, nullptr); }).summary().find("in is memory of device 2"),
        std::string::npos);
    group.check();
  });
}

TEST(DevicePeers, AStreamOfAnotherDeviceIsNamed) {
  const VisibleDevices visible(first_devices(2));
  run_threads(2, [](Communicator& comm) {
    DeviceGroup group(comm, {.device = comm.rank(), .timeout_ms = 1000});
    const OnDevice other(1 - comm.rank());
    const OwnStream stream;
    void* const data = group.allocate(64);
    const Error error = error_of([&] { group.run(sum_of(data, 16), stream.handle()); });
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
    const std::string device = std::to_string(comm.rank());
    EXPECT_EQ(error.summary(), "the stream does not belong to device " + device +
                                   ", where the group of rank " + device + " is");
  });
}

// The thread may have no context, the group's context, or another context.
TEST(DevicePeers, TheThreadKeepsItsContext) {
  const VisibleDevices visible(first_devices(3));
  run_threads(2, [](Communicator& comm) {
    const auto use = [&] {
      void* const before = current_context();
      auto group = std::make_unique<DeviceGroup>(comm, DeviceOptions{.device = comm.rank()});
      EXPECT_EQ(current_context(), before);
      void* const data = group->allocate(64);
      EXPECT_EQ(current_context(), before);
      {
        const OnDevice own(comm.rank());
        const OwnStream stream;
        driver_function<int(void*)>("cuCtxSetCurrent")(before);
        group->run(sum_of(data, 16), stream.handle());
        EXPECT_EQ(current_context(), before);
        group->synchronize(stream.handle());
        EXPECT_EQ(current_context(), before);
      }
      group.reset();
      EXPECT_EQ(current_context(), before);
    };
    use();
    for (const int device : {0, 1, 2}) {
      const OnDevice own(device);
      use();
      EXPECT_EQ(current_context(), own.context());
    }
    EXPECT_EQ(current_context(), nullptr);
  });
}

}  // namespace
}  // namespace unisono::device
