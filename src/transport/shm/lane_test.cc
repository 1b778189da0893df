// Lanes and the pool: wrap-around, full rings, slow readers, every length, and two threads.
#include "transport/shm/lane.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace unisono::shm {
namespace {

std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(seed * 37 + i * 11);
  }
  return data;
}

// A ring with some readers, at a position near which the 32-bit count wraps, or new.
struct Lane {
  explicit Lane(std::size_t readers, std::uint32_t start = 1) : heads(readers) {
    std::vector<const Head*> views;
    for (Head& head : heads) {
      head.cells.store(start - 1);
      views.push_back(&head);
    }
    // A ring that has wrapped holds its last lap.
    for (std::uint32_t back = 1; start != 1 && back <= kCells; ++back) {
      ring->cells[(start - back) % kCells].header.store(
          make_header(start - back, 0, CellKind::bytes, 1));
    }
    writer = std::make_unique<LaneWriter>(ring->cells, views, start);
    for (Head& head : heads) {
      ends.emplace_back(ring->cells, &head, start);
    }
  }
  bool put(const std::vector<std::byte>& data, std::uint64_t signature) {
    if (!writer->has_room(cells_for(data.size()))) {
      return false;
    }
    writer->put_bytes(data.data(), data.size(), signature);
    return true;
  }
  // Takes a reader's next message, if it has arrived.
  bool take(std::size_t reader, std::vector<std::byte>& data, std::uint64_t& signature) {
    const LaneCell* cell = ends[reader].arrived();
    if (cell == nullptr) {
      return false;
    }
    const std::uint64_t header = cell->header.load();
    signature = cell->signature;
    data.resize(header_bytes(header));
    std::byte buffer[kInlineBytes];
    if (header_cells(header) > 1) {
      if (!ends[reader].gather(data.size(), buffer)) {
        return false;
      }
    } else {
      std::memcpy(buffer, cell->payload, data.size());
    }
    data.assign(buffer, buffer + data.size());
    ends[reader].release(header_cells(header), true);
    return true;
  }

  std::unique_ptr<Ring> ring = std::make_unique<Ring>();
  std::vector<Head> heads;
  std::unique_ptr<LaneWriter> writer;
  std::vector<LaneReader> ends;
};

void expect_all_lengths(Lane& lane) {
  for (std::size_t bytes = 0; bytes <= kInlineBytes; ++bytes) {
    const auto sent = pattern(bytes, bytes);
    ASSERT_TRUE(lane.put(sent, bytes + 1));
    std::vector<std::byte> got;
    std::uint64_t signature = 0;
    ASSERT_TRUE(lane.take(0, got, signature));
    ASSERT_EQ(got, sent);
    ASSERT_EQ(signature, bytes + 1);
    ASSERT_FALSE(lane.take(0, got, signature));
  }
}

TEST(Lane, CarriesEveryLength) {
  Lane lane(1);
  expect_all_lengths(lane);
}

TEST(Lane, GoesOnWhereItsPositionsWrap) {
  for (std::uint32_t before = 1; before < 3 * kCells; ++before) {
    Lane lane(1, 0U - before);
    expect_all_lengths(lane);
  }
}

TEST(Lane, HoldsAsManyCellsAsItHas) {
  for (const std::uint32_t start : {1U, 0U - 7U}) {
    Lane lane(1, start);
    for (std::uint32_t i = 0; i < kCells; ++i) {
      ASSERT_TRUE(lane.put(pattern(8, i), i));
    }
    EXPECT_FALSE(lane.put(pattern(8, 0), 0));
    const std::uint32_t mark = lane.writer->position();
    EXPECT_FALSE(lane.writer->drained(mark));
    std::vector<std::byte> got;
    std::uint64_t signature = 0;
    for (std::uint32_t i = 0; i < kCells; ++i) {
      ASSERT_TRUE(lane.take(0, got, signature));
      ASSERT_EQ(got, pattern(8, i));
      EXPECT_EQ(lane.writer->drained(mark), i + 1 == kCells);
    }
    EXPECT_TRUE(lane.put(pattern(8, 1), 1));
  }
}

TEST(Lane, WaitsForItsSlowestReader) {
  Lane lane(3);
  std::vector<std::byte> got;
  std::uint64_t signature = 0;
  for (std::uint32_t i = 0; i < kCells; ++i) {
    ASSERT_TRUE(lane.put(pattern(8, i), i));
    ASSERT_TRUE(lane.take(0, got, signature));
    ASSERT_TRUE(lane.take(2, got, signature));
  }
  EXPECT_FALSE(lane.put(pattern(8, 0), 0));
  ASSERT_TRUE(lane.take(1, got, signature));
  EXPECT_EQ(got, pattern(8, 0));
  EXPECT_TRUE(lane.put(pattern(8, 77), 0));
  EXPECT_FALSE(lane.put(pattern(8, 0), 0));
}

TEST(Lane, CarriesReferencesAndGivesSlotsBackInOrder) {
  std::vector<std::byte> memory(1);  // never touched
  Pool pool(memory.data(), 3, 3);
  Lane lane(1);
  std::vector<std::uint32_t> slots;
  for (int i = 0; i < 3; ++i) {
    slots.push_back(pool.take());
    lane.writer->put_reference(
        {.bytes = 100, .offset = slots.back(), .address = 0, .region = 0, .reserved = 0},
        CellKind::slot, 9);
    lane.writer->lend(slots.back());
  }
  EXPECT_EQ(lane.writer->slots_lent(), 3U);
  Reference reference;
  const LaneCell* cell = lane.ends[0].arrived();
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(header_kind(cell->header.load()), CellKind::slot);
  std::memcpy(&reference, cell->payload, sizeof(reference));
  EXPECT_EQ(reference.offset, slots[0]);
  lane.ends[0].release(1, true);
  lane.writer->refresh();
  lane.writer->reclaim(pool);
  EXPECT_EQ(lane.writer->slots_lent(), 2U);
  EXPECT_EQ(pool.take(), slots[0]);
}

TEST(Lane, TwoThreadsKeepOrderAndContents) {
  Lane lane(2, 0U - 500U);
  constexpr std::size_t kMessages = 20'000;
  const auto length = [](std::size_t i) { return i * 7919 % (kInlineBytes + 1); };
  const auto read = [&](std::size_t reader, std::size_t& wrong) {
    std::vector<std::byte> got;
    std::uint64_t signature = 0;
    for (std::size_t i = 0; i < kMessages;) {
      if (!lane.take(reader, got, signature)) {
        std::this_thread::yield();
        continue;
      }
      wrong += got == pattern(length(i), i) && signature == i ? 0U : 1U;
      ++i;
    }
  };
  std::size_t wrong[2] = {};
  std::thread first([&] { read(0, wrong[0]); });
  std::thread second([&] { read(1, wrong[1]); });
  for (std::size_t i = 0; i < kMessages;) {
    if (lane.put(pattern(length(i), i), i)) {
      ++i;
    } else {
      std::this_thread::yield();
    }
  }
  first.join();
  second.join();
  EXPECT_EQ(wrong[0] + wrong[1], 0U);
}

}  // namespace
}  // namespace unisono::shm
