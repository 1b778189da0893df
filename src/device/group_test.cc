// Tests collectives on device memory between threads, on a driver that needs no GPU.
#include <gtest/gtest.h>

#include <optional>

#include "base/testing_sanitizers.h"
#include "device/testing_driver.h"
#include "unisono/device.hpp"

namespace unisono::device {
namespace {

TEST(DeviceGroup, RandomCallsAreRight) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    run_threads(ranks, [&](Communicator& comm) {
      const OwnStream stream;
      DeviceGroup group(comm, {.scratch_bytes = std::size_t{1} << 16});
      Buffer in(std::size_t{4} << 20);
      Buffer out(std::size_t{4} << 20);
      std::mt19937_64 random(static_cast<unsigned>(ranks));
      for (int k = 0; k < repetitions(150); ++k) {
        const Trial trial = draw(ranks, random);
        const std::size_t shift_in = random() % 20 * size_of(trial.dtype);
        const std::size_t shift_out = random() % 20 * size_of(trial.dtype);
        EXPECT_EQ(run_trial(group, comm, trial, in.data() + shift_in, out.data() + shift_out,
                            stream.handle()),
                  "");
      }
    });
  }
}

TEST(DeviceGroup, OneRankMultipliesInPlace) {
  run_threads(1, [](Communicator& comm) {
    const OwnStream stream;
    DeviceGroup group(comm);
    Buffer memory(40);
    auto* const data = reinterpret_cast<float*>(memory.data());
    std::fill_n(data, 10, 3.0F);
    group.run({.collective = Collective::all_reduce,
               .in = data,
               .out = data,
               .count = 10,
               .dtype = Dtype::f32,
               .reduction = Reduction::premul_sum(0.5)},
              stream.handle());
    group.synchronize(stream.handle());
    EXPECT_EQ(data[0], 1.5F);
    EXPECT_EQ(data[9], 1.5F);
  });
}

// A rank's own part is already in place. Copying the part to itself would write memory that other
// ranks are reading; ThreadSanitizer would detect that.
TEST(DeviceGroup, APartInPlaceIsNotWritten) {
  run_threads(4, [](Communicator& comm) {
    constexpr std::size_t kCount = 20'000;
    const OwnStream stream;
    DeviceGroup group(comm);
    Buffer memory(4 * kCount);
    const std::size_t rank = static_cast<std::size_t>(comm.rank());
    for (int k = 0; k < 20; ++k) {
      unsigned char* const part = memory.data() + rank * kCount;
      std::fill_n(part, kCount, static_cast<unsigned char>(rank + 1));
      group.run({.collective = Collective::all_gather,
                 .in = part,
                 .out = memory.data(),
                 .count = kCount,
                 .dtype = Dtype::u8},
                stream.handle());
      group.synchronize(stream.handle());
      for (std::size_t r = 0; r < 4; ++r) {
        EXPECT_EQ(memory.data()[r * kCount + rank], r + 1);
      }
      comm.barrier();
    }
  });
}

TEST(DeviceGroup, OperationsFollowEachOtherWithoutTheHost) {
  run_threads(3, [](Communicator& comm) {
    DeviceGroup group(comm);
    const OwnStream one;
    const OwnStream two;
    Buffer memory(4000);
    auto* const data = reinterpret_cast<std::int32_t*>(memory.data());
    std::fill_n(data, 1000, 1);
    const Call call{.collective = Collective::all_reduce,
                    .in = data,
                    .out = data,
                    .count = 1000,
                    .dtype = Dtype::i32};
    for (int k = 0; k < 10; ++k) {
      group.run(call,
                (k % 2 == 0 ? one : two).handle());  // the next call waits for this one
    }
    group.synchronize(one.handle());
    group.synchronize(two.handle());
    EXPECT_EQ(data[0], 59049);
    EXPECT_EQ(data[999], 59049);
  });
}

// The driver reuses the handle of a destroyed stream at once, while its calls may still be running.
TEST(DeviceGroup, AStreamIsNotTakenForOneBeforeItOfTheSameHandle) {
  run_threads(2, [](Communicator& comm) {
    DeviceGroup group(comm);
    Buffer memory(4000);
    auto* const data = reinterpret_cast<std::int32_t*>(memory.data());
    std::fill_n(data, 1000, 1);
    const auto sum = [&](std::size_t count, const OwnStream& stream) {
      group.run({.collective = Collective::all_reduce,
                 .in = data,
                 .out = data,
                 .count = count,
                 .dtype = Dtype::i32},
                stream.handle());
    };
    if (comm.rank() == 1) {
      comm.barrier();  // the other rank has made both calls
    }
    auto first = std::make_optional<OwnStream>();
    sum(1000, *first);
    const void* const handle = first->handle();
    first.reset();
    const OwnStream second;
    if (comm.rank() == 0) {
      EXPECT_EQ(second.handle(), handle);
    }
    sum(500, second);
    if (comm.rank() == 0) {
      comm.barrier();
    }
    group.synchronize(second.handle());
    EXPECT_EQ(data[0], 4);
    EXPECT_EQ(data[999], 2);
  });
}

TEST(DeviceGroup, AGraphIsReplayed) {
  run_threads(2, [](Communicator& comm) {
    const OwnStream stream;
    DeviceGroup group(comm);
    Buffer memory(400);
    auto* const data = reinterpret_cast<std::int64_t*>(memory.data());
    std::fill_n(data, 50, 1);
    driver_function<int(void*, int)>("cuStreamBeginCapture_v2")(stream.handle(), kOfThread);
    for (int k = 0; k < 5; ++k) {
      group.run({.collective = Collective::all_reduce,
                 .in = data,
                 .out = data,
                 .count = 50,
                 .dtype = Dtype::i64},
                stream.handle());
    }
    void* graph = nullptr;
    driver_function<int(void*, void**)>("cuStreamEndCapture")(stream.handle(), &graph);
    EXPECT_EQ(data[0], 1);
    for (int k = 0; k < 4; ++k) {
      driver_function<int(void*, void*)>("cuGraphLaunch")(graph, stream.handle());
    }
    group.synchronize(stream.handle());
    EXPECT_EQ(data[0], 1 << 20);
    EXPECT_EQ(data[49], 1 << 20);
    driver_function<int(void*)>("cuGraphDestroy")(graph);
  });
}

// Branches of a graph run concurrently; the calls of a group must not.
TEST(DeviceGroup, CallsOfAGraphRunInTheirOrderWhateverTheirStreams) {
  run_threads(2, [](Communicator& comm) {
    const OwnStream one;
    const OwnStream two;
    DeviceGroup group(comm);
    Buffer memory(8000);
    auto* const data = reinterpret_cast<std::int32_t*>(memory.data());
    std::fill_n(data, 2000, 1);
    const auto sum = [&](std::int32_t* at, const OwnStream& stream) {
      group.run({.collective = Collective::all_reduce,
                 .in = at,
                 .out = at,
                 .count = 1000,
                 .dtype = Dtype::i32},
                stream.handle());
    };
    const auto follow = [](const OwnStream& before, const OwnStream& stream) {
      void* event = nullptr;
      cuda_driver().cuEventCreate(&event, 2);
      cuda_driver().cuEventRecord(event, before.handle());
      cuda_driver().cuStreamWaitEvent(stream.handle(), event, 0);
      cuda_driver().cuEventDestroy_v2(event);
    };
    driver_function<int(void*, int)>("cuStreamBeginCapture_v2")(one.handle(), kOfThread);
    follow(one, two);
    for (int k = 0; k < 5; ++k) {
      sum(data, one);
      sum(data + 1000, two);
    }
    follow(two, one);
    void* graph = nullptr;
    ASSERT_EQ(driver_function<int(void*, void**)>("cuStreamEndCapture")(one.handle(), &graph), 0);
    for (int k = 0; k < 3; ++k) {
      driver_function<int(void*, void*)>("cuGraphLaunch")(graph, one.handle());
    }
    group.synchronize(one.handle());
    EXPECT_EQ(data[0], 1 << 15);
    EXPECT_EQ(data[1999], 1 << 15);
    driver_function<int(void*)>("cuGraphDestroy")(graph);
  });
}

// Shapes that change with each call, such as token counts, must not exhaust the memory for plans.
TEST(DeviceGroup, ManyKindsOfCallsAreForgottenAgain) {
  run_threads(2, [](Communicator& comm) {
    const OwnStream stream;
    DeviceGroup group(comm);
    Buffer memory(std::size_t{1} << 20);
    auto* const data = reinterpret_cast<std::int32_t*>(memory.data());
    data[0] = 1;
    for (std::size_t count = 1; count < static_cast<std::size_t>(repetitions(15'000)); ++count) {
      group.run(
          {.collective = Collective::broadcast, .out = data, .count = count, .dtype = Dtype::i32},
          stream.handle());
      if (count % 100 == 0) {
        group.synchronize(stream.handle());
      }
    }
    group.synchronize(stream.handle());
    EXPECT_EQ(data[0], 1);
  });
}

}  // namespace
}  // namespace unisono::device
