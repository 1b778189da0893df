// Slots that a lane keeps while more cells pass than a signed position can count. Takes seconds, so
// it is a program of its own.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "transport/shm/lane.h"
#include "transport/shm/pool.h"

namespace unisono::shm {
namespace {

TEST(LaneWrap, SlotsComeBackAfterAnyNumberOfShortMessages) {
  std::byte memory[1] = {};  // never touched
  Pool pool(memory);
  const auto ring = std::make_unique<Ring>();
  Head head = {};
  LaneWriter writer(ring->cells, {&head});
  for (std::uint32_t i = 0; i < kSlotsPerLane; ++i) {
    writer.put_reference({}, CellKind::slot, 1);
    writer.lend(pool.take());
  }
  const std::byte data[kInlineBytes] = {};
  for (std::uint64_t cells = 0; cells < (std::uint64_t{1} << 31) + kCells; cells += kInlineCells) {
    if (!writer.has_room(kInlineCells)) {
      head.cells.store(writer.position() - 1, std::memory_order_release);
      ASSERT_TRUE(writer.has_room(kInlineCells));
    }
    writer.put_bytes(data, sizeof(data), 1);
  }
  head.cells.store(writer.position() - 1, std::memory_order_release);
  writer.refresh();
  writer.reclaim(pool);
  EXPECT_EQ(writer.slots_lent(), 0U);
}

}  // namespace
}  // namespace unisono::shm
