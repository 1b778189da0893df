// Tests that user mistakes and machine failures are reported on all ranks in time, and that all
// memory is freed.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include "device/testing_driver.h"
#include "unisono/device.hpp"

namespace unisono::device {
namespace {

Call all_reduce(void* data, std::size_t count) {
  return {.collective = Collective::all_reduce,
          .in = data,
          .out = data,
          .count = count,
          .dtype = Dtype::f32};
}

// Waits until another rank's error arrives.
void wait_for_the_end(const DeviceGroup& group) {
  for (int k = 0; k < 2000; ++k) {
    group.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(DeviceMistakes, MemoryOfTheHostIsNamed) {
  run_threads(2, [](Communicator& comm) {
    DeviceGroup group(comm);
    Buffer device(64);
    std::array<float, 16> host = {};
    const Error error = error_of([&] {
      group.run({.collective = Collective::all_reduce,
                 .in = host.data(),
                 .out = device.data(),
                 .count = 16,
                 .dtype = Dtype::f32},
                nullptr);
    });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(error.summary(), "in is memory of the host, out of the device");
  });
}

TEST(DeviceMistakes, WhatIsWrongWithACallIsToldAtOnce) {
  run_threads(2, [](Communicator& comm) {
    DeviceGroup group(comm);
    Buffer device(64);
    const std::string here = " on rank " + std::to_string(comm.rank()) + ": ";
    const auto told = [&](const Call& call) {
      std::string text(error_of([&] { group.run(call, nullptr); }).summary());
      const std::size_t at = text.find(here);
      return at == std::string::npos ? text : text.replace(at, here.size(), ": ");
    };
    EXPECT_EQ(
        told({.collective = Collective::broadcast, .out = device.data(), .count = 1, .root = 5}),
        "broadcast: root 5 is not a rank");
    EXPECT_EQ(told({.collective = Collective::all_reduce,
                    .in = device.data(),
                    .out = device.data(),
                    .count = 1,
                    .dtype = Dtype::f32,
                    .reduction = ReduceOp::bxor}),
              "all_reduce: no device kernel supports bxor of f32");
    EXPECT_EQ(told({.collective = Collective::all_gather, .in = device.data(), .count = 1}),
              "all_gather: `out` is null, but 2 bytes are written to it");
    EXPECT_EQ(
        told({.collective = Collective::all_gather_v, .in = device.data(), .out = device.data()}),
        "all_gather_v: counts has 0 entries for 2 ranks");
    EXPECT_EQ(told({.collective = Collective::all_to_all,
                    .in = device.data(),
                    .out = device.data(),
                    .count = 1}),
              "all_to_all: on device memory all_to_all_v is not possible in place");
    EXPECT_EQ(told({.collective = Collective::all_to_all,
                    .in = device.data(),
                    .out = device.data() + 4,
                    .count = 4}),
              "all_to_all: `in` and `out` overlap, but not as the in-place rule allows");
    EXPECT_EQ(told({.collective = Collective::all_gather,
                    .in = device.data() + 1,
                    .out = device.data(),
                    .count = 4}),
              "all_gather: `in` and `out` overlap, but not as the in-place rule allows");
    EXPECT_EQ(told({.collective = Collective::all_reduce, .out = device.data(), .count = 1}),
              "all_reduce: `in` is null, but 1 bytes are read from it");
    EXPECT_EQ(told({.collective = Collective::broadcast, .count = 1, .root = comm.rank()}),
              "broadcast: `out` is null, but 1 bytes are written to it");
    EXPECT_EQ(told({.collective = Collective::broadcast,
                    .in = device.data() + 8,
                    .out = device.data(),
                    .count = 1,
                    .root = comm.rank()}),
              "broadcast: on device memory broadcast is always in place");
    EXPECT_EQ(error_of([&] { group.set_timeout(-1); }).summary(),
              "a limit of -1 ms for device groups");
    Call limited = all_reduce(device.data(), 4);
    limited.timeout_ms = 100;
    EXPECT_EQ(told(limited), "all_reduce: a call on device memory has no time limit of its own");
    Call wrong = all_reduce(device.data(), 4);
    wrong.algorithm = "no_such";
    EXPECT_EQ(told(wrong), "no algorithm no_such for all_reduce");
    group.check();
  });
}

TEST(DeviceMistakes, OnlyFlatReducesInPlace) {
  run_threads(2, [](Communicator& comm) {
    DeviceGroup group(comm);
    Buffer device(64);
    const Error error = error_of([&] {
      group.run({.collective = Collective::reduce,
                 .in = device.data(),
                 .out = device.data(),
                 .count = 4,
                 .dtype = Dtype::f32,
                 .root = comm.rank(),
                 .algorithm = "binomial"},
                nullptr);
    });
    EXPECT_EQ(error.summary(), "reduce on rank " + std::to_string(comm.rank()) +
                                   ": on device memory only flat reduces in place");
  });
}

// Rank 1 makes the call `other`, all other ranks make the call `usual`.
void expect_that_all_are_told(const Call& usual, const Call& other) {
  run_threads(3, [&](Communicator& comm) {
    const OwnStream stream;
    DeviceGroup group(comm);
    Buffer device(4000);
    Call call = comm.rank() == 1 ? other : usual;
    call.in = call.out = device.data();
    const Error error = error_of([&] {
      group.run(call, stream.handle());
      group.synchronize(stream.handle());
    });
    EXPECT_TRUE(error.code() == ErrorCode::mismatch || error.code() == ErrorCode::aborted)
        << error.what();
    EXPECT_NE(error.message().find("makes another call than rank"), std::string::npos)
        << error.what();
  });
}

TEST(DeviceMistakes, OtherCountsAreNamedOnAllRanks) {
  expect_that_all_are_told(all_reduce(nullptr, 200), all_reduce(nullptr, 100));
}

TEST(DeviceMistakes, OtherFactorsAreNamedOnAllRanks) {
  Call usual = all_reduce(nullptr, 200);
  usual.reduction = Reduction::premul_sum(0.5);
  Call other = usual;
  other.reduction = Reduction::premul_sum(0.25);
  expect_that_all_are_told(usual, other);
}

// Each rank's counts are valid by themselves, but they disagree.
TEST(DeviceMistakes, BlocksThatDoNotAgreeAreNamed) {
  run_threads(2, [](Communicator& comm) {
    const OwnStream stream;
    DeviceGroup group(comm);
    Buffer in(4000);
    Buffer out(4000);
    const std::array<std::size_t, 2> sent = {3, 4};
    const std::array<std::size_t, 2> got = {comm.rank() == 0 ? 3U : 4U, comm.rank() == 0 ? 5U : 4U};
    const Error error = error_of([&] {
      group.run({.collective = Collective::all_to_all_v,
                 .in = in.data(),
                 .out = out.data(),
                 .dtype = Dtype::f32,
                 .counts = sent,
                 .recv_counts = got},
                stream.handle());
      group.synchronize(stream.handle());
    });
    EXPECT_NE(error.message().find("makes another call than rank"), std::string::npos)
        << error.what();
  });
}

void expect_that_rank_1_does_not_come(const DeviceOptions& options, int set_ms) {
  run_threads(2, [&](Communicator& comm) {
    DeviceGroup group(comm, options);
    if (set_ms >= 0) {
      group.set_timeout(set_ms);
    }
    Buffer device(4000);
    const Error error = error_of([&] {
      if (comm.rank() == 0) {
        group.run(all_reduce(device.data(), 100), nullptr);
        group.synchronize(nullptr);
      } else {
        wait_for_the_end(group);
      }
    });
    EXPECT_NE(error.message().find("rank 1 has not arrived for 200 ms"), std::string::npos)
        << error.what();
  });
}

TEST(DeviceMistakes, ARankThatDoesNotComeIsNamed) {
  expect_that_rank_1_does_not_come({.timeout_ms = 200}, -1);
}

TEST(DeviceMistakes, TheLimitMayBeSetLater) {
  expect_that_rank_1_does_not_come({.timeout_ms = 600'000}, 200);
}

// Each delay is a third of the limit; their total exceeds the limit.
TEST(DeviceMistakes, ARankThatIsLateOftenIsNotTakenForOneThatDoesNotCome) {
  constexpr int kLimitMs = 3000;
  run_threads(2, [](Communicator& comm) {
    const OwnStream stream;
    DeviceGroup group(comm, {.timeout_ms = kLimitMs});
    Buffer device(400);
    std::memset(device.data(), 0, 400);
    for (int k = 0; k < 5; ++k) {
      if (comm.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(kLimitMs / 3));
      }
      group.run(all_reduce(device.data(), 100), stream.handle());
      if (comm.rank() == 1) {
        group.synchronize(stream.handle());
      }
    }
    group.synchronize(stream.handle());
  });
}

TEST(DeviceMistakes, OtherOptionsAreToldOnAllRanks) {
  run_threads(2, [](Communicator& comm) {
    const int channels = comm.rank() == 0 ? -1 : 1;
    const Error error = error_of([&] { const DeviceGroup group(comm, {.channels = channels}); });
    EXPECT_TRUE(error.summary().starts_with("rank 0 requests -1 channels")) << error.what();
    comm.barrier();
  });
}

TEST(DeviceMistakes, MoreThanAllMemoryIsTold) {
  run_threads(2, [](Communicator& comm) {
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
    {
      DeviceGroup group(comm);
      const Error error = error_of([&] { group.allocate(kMost - 10); });
      EXPECT_EQ(error.code(), ErrorCode::resource) << error.what();
    }
    const Error error =
        error_of([&] { const DeviceGroup group(comm, {.scratch_bytes = kMost - 10}); });
    EXPECT_EQ(error.code(), ErrorCode::resource) << error.what();
  });
}

TEST(DeviceMistakes, AbortEndsWhatRuns) {
  run_threads(2, [](Communicator& comm) {
    const Error error = error_of([&] {
      DeviceGroup group(comm);  // rank 0 may still be in it when rank 1 aborts
      Buffer device(4000);
      if (comm.rank() == 0) {
        group.run(all_reduce(device.data(), 100), nullptr);
        group.synchronize(nullptr);
      } else {
        comm.abort("enough");
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        comm.barrier();
      }
    });
    EXPECT_EQ(error.code(), ErrorCode::aborted) << error.what();
    EXPECT_NE(error.message().find("enough"), std::string::npos) << error.what();
  });
}

TEST(DeviceMistakes, ADeviceThatIsNotThereIsToldToAll) {
  run_threads(2, [](Communicator& comm) {
    const Error error =
        error_of([&] { DeviceGroup group(comm, {.device = comm.rank() == 1 ? 7 : 0}); });
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_NE(error.message().find("there is no device 7"), std::string::npos) << error.what();
    comm.barrier();  // the communicator still works
  });
}

// Each driver call fails once, on one rank only. The error is reported and all memory is freed.
TEST(DeviceMistakes, ACallOfTheDriverThatFailsLeavesNothingBehind) {
  const auto fail = driver_function<void(const char*, int)>("fake_cuda_fail");
  const auto left = driver_function<int()>("fake_cuda_left");
  const int before = left();
  const std::array names = {"cuDeviceGet",        "cuDevicePrimaryCtxRetain",
                            "cuModuleLoadData",   "cuModuleGetFunction",
                            "cuStreamCreate",     "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                            "cuFuncGetAttribute", "cuDeviceGetAttribute",
                            "cuMemHostAlloc",     "cuEventCreate"};
  for (const char* const name : names) {
    fail(name, 1);
    run_threads(2, [&](Communicator& comm) {
      const Error error = error_of([&] { const DeviceGroup group(comm); });
      EXPECT_NE(error.summary(), "nothing was thrown") << name;
      comm.barrier();
    });
    EXPECT_EQ(left(), before) << name;
  }
  for (int nth = 1; nth <= 8; ++nth) {  // arenas, shifts and plans
    fail("cuMemAlloc_v2", nth);
    run_threads(2, [&](Communicator& comm) {
      const Error error = error_of([&] { const DeviceGroup group(comm); });
      EXPECT_EQ(error.code(), ErrorCode::resource) << error.what();
      comm.barrier();
    });
    EXPECT_EQ(left(), before) << nth;
  }
  fail("", 0);
  run_threads(2, [](Communicator& comm) {
    DeviceGroup group(comm);
    group.allocate(1000);
  });
  EXPECT_EQ(left(), before);
}

}  // namespace
}  // namespace unisono::device
