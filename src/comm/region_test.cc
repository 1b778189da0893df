// Registered memory whose owner frees it after a failure, while a thread of the process reads it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "comm/testing_ranks.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {
namespace {

constexpr std::size_t kCount = std::size_t{1} << 20;
constexpr std::size_t kBytes = kCount * sizeof(std::int32_t);

struct Memory {
  std::span<std::byte> bytes;
  Region region;
  std::function<void()> free = [] {};
};

Memory allocated(Communicator& comm) {
  Memory memory{.bytes = {}, .region = comm.allocate(kBytes)};
  memory.bytes = memory.region.bytes();
  return memory;
}

Memory adopted(Communicator& comm) {
  void* const pages =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::span bytes(static_cast<std::byte*>(pages), kBytes);
  return {.bytes = bytes, .region = comm.register_buffer(bytes), .free = [pages] {
            ::munmap(pages, kBytes);
          }};
}

struct Scene {
  std::atomic<bool> somebody_reads = false;
  testing::SharedEvent reads;
  testing::SharedEvent freed;
  std::atomic<int> wrong = 0;
};

// The first reader keeps its operand in use until the peer has freed its memory.
void combine(void* inout, const void* in, std::size_t count, void* context) {
  Scene& scene = *static_cast<Scene*>(context);
  if (!scene.somebody_reads.exchange(true)) {
    scene.reads.happen();
    EXPECT_TRUE(scene.freed.wait());
  }
  auto* const sums = static_cast<std::int32_t*>(inout);
  const auto* const operands = static_cast<const std::int32_t*>(in);
  for (std::size_t i = 0; i < count; ++i) {
    scene.wrong += operands[i] == 7 ? 0 : 1;
    sums[i] += operands[i];
  }
}

void free_while_read(const std::function<Memory(Communicator&)>& make) {
  Scene scene;
  testing::run_ranks(3, [&](Communicator& all) {
    Communicator pair = all.split(all.rank() / 2, all.rank());
    if (all.rank() == 2) {
      EXPECT_TRUE(scene.reads.wait());
      all.abort("the test ends the world");
      return;
    }
    Memory memory = make(pair);
    auto* const values = reinterpret_cast<std::int32_t*>(memory.bytes.data());
    std::fill_n(values, kCount, 7);
    std::vector<std::int32_t> sums(kCount);
    EXPECT_THROW(pair.all_reduce(std::span<const std::int32_t>(values, kCount), sums,
                                 Reduction::custom({.combine = combine, .context = &scene})),
                 Error);
    memory.region = Region();
    memory.free();
    scene.freed.happen();
  });
  EXPECT_TRUE(scene.somebody_reads);
  EXPECT_EQ(scene.wrong, 0);
}

TEST(Region, AllocatedMemoryIsFreedWhileAThreadReadsIt) {
  free_while_read(allocated);
}

TEST(Region, AdoptedMemoryIsFreedWhileAThreadReadsIt) {
  free_while_read(adopted);
}

// peer_memory() does not promise this, but its readers cannot learn of a failure in time either.
TEST(Region, OfAPeerStaysReadableInAFailedWorld) {
  testing::SharedEvent found;
  testing::SharedEvent freed;
  testing::run_ranks(2, [&](Communicator& all) {
    Memory memory = adopted(all);
    std::memset(memory.bytes.data(), 7, kBytes);
    const SharedPlace mine = all.place_of(memory.bytes.data(), kBytes);
    std::vector<SharedPlace> places(2);
    all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(places)));
    const std::byte* const peers = all.peer_memory(1, places[1], kBytes);
    ASSERT_NE(peers, nullptr);
    if (all.rank() == 1) {
      EXPECT_TRUE(found.wait());
      all.abort("the test ends the world");
      memory.region = Region();
      memory.free();
      freed.happen();
      return;
    }
    found.happen();
    EXPECT_TRUE(freed.wait());
    EXPECT_EQ(std::count(peers, peers + kBytes, std::byte{7}), kBytes);
    memory.region = Region();
    memory.free();
  });
}

}  // namespace
}  // namespace unisono::comm
