#include "bootstrap/local_host.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "bootstrap/local_world.h"
#include "bootstrap/testing.h"

namespace unisono::comm::testing {
namespace {

constexpr std::size_t kBytes = 4096;

std::unique_ptr<LocalHost> host_on(LocalWorld& ranks, const std::string& job) {
  return std::make_unique<LocalHost>(ranks, job, 1, false, [](const std::exception&) {});
}

// Rank 0 registers memory, rank 1 finds it, and rank 0 unregisters it. Then reports whether rank 1
// still finds it.
std::string found_after_removal(int rank, const std::string& job, bool is_world_ended) {
  const auto ranks = LocalWorld::join(resolve(options_for(rank, 2, job)));
  const auto host = host_on(*ranks, job);
  if (rank == 0) {
    const UniqueFd memory = shm::create_memory("unisono-test", kBytes);
    const shm::Mapping mapping(memory.get(), kBytes);
    mapping.data()[kBytes - 1] = std::byte{7};
    const std::uint32_t number =
        host->regions().add(mapping.data(), kBytes, memory.get(), mapping.data());
    host->all_gather(std::as_bytes(std::span(&number, 1)));
    host->all_gather({});  // found
    if (is_world_ended) {
      host->memory().abort_record().state.store(2, std::memory_order_release);
    }
    host->regions().remove(number);
    host->all_gather({});  // removed
    return {};
  }
  std::uint32_t number = 0;
  const auto given = host->all_gather(std::as_bytes(std::span(&number, 1)));
  std::memcpy(&number, given[0].data(), sizeof(number));
  const auto found = host->regions().of_peer(0, number);
  host->all_gather({});
  host->all_gather({});
  host->regions().drain();
  if (!found) {
    return "never";
  }
  if (!host->regions().of_peer(0, number)) {
    return "no more";
  }
  return found->base[kBytes - 1] == std::byte{7} ? "still" : "with other bytes";
}

// The rank that gives a segment may fail and drop the segment before the other ranks have taken it.
TEST(ProcessMemory, KeepsASegmentUntilAllHaveTakenIt) {
  const UniqueFd file = shm::create_memory("unisono-test", kBytes);
  ProcessMemory memory(file.get(), kBytes);
  auto segment = std::make_shared<shm::Mapping>(file.get(), kBytes);
  const std::weak_ptr<shm::Mapping> seen = segment;
  memory.give(3, 7, std::move(segment), 2);
  EXPECT_EQ(memory.take(3, 8), nullptr);
  EXPECT_EQ(memory.take(4, 7), nullptr);
  EXPECT_EQ(memory.take(3, 7), seen.lock());
  EXPECT_FALSE(seen.expired());
  EXPECT_NE(memory.take(3, 7), nullptr);
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(memory.take(3, 7), nullptr);
}

TEST(LocalHost, MemoryOfAPeerGoesWhenThePeerTakesItBack) {
  const std::string job = unique_name("regions");
  const auto said =
      as_processes(2, [&](int rank) { return found_after_removal(rank, job, false); });
  EXPECT_EQ(said[1], "no more");
}

// A peer that knows that the world has ended may free memory that another peer, which does not know
// it yet, still reads.
TEST(LocalHost, MemoryOfAPeerStaysWhenTheWorldHasEnded) {
  const std::string job = unique_name("regions-end");
  const auto said = as_processes(2, [&](int rank) { return found_after_removal(rank, job, true); });
  EXPECT_EQ(said[1], "still");
}

}  // namespace
}  // namespace unisono::comm::testing
