#include "transport/shm/region_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace unisono::shm {
namespace {

std::byte memory[1 << 12];

// Returns a region whose fields all follow from its number.
SharedRegion region(std::uint32_t number) {
  return {.base = memory + number % 4096,
          .in_process = memory + number % 4093,
          .bytes = number,
          .number = number,
          .owner = static_cast<int>(number % 7)};
}

bool is_whole(const SharedRegion& found) {
  const SharedRegion right = region(found.number);
  return found.base == right.base && found.in_process == right.in_process &&
         found.bytes == right.bytes && found.owner == right.owner;
}

std::optional<SharedRegion> find(const RegionTable& table, std::uint32_t number) {
  return table.find([&](const SharedRegion& each) { return each.number == number; });
}

TEST(RegionTable, FindsWhatIsThere) {
  RegionTable table;
  EXPECT_FALSE(find(table, 1));
  for (std::uint32_t number = 1; number <= 100; ++number) {  // several blocks
    table.add(region(number));
  }
  for (std::uint32_t number = 1; number <= 100; number += 2) {
    table.remove(static_cast<int>(number % 7), number);
  }
  table.remove(0, 2);  // another owner's
  for (std::uint32_t number = 1; number <= 100; ++number) {
    ASSERT_EQ(find(table, number).has_value(), number % 2 == 0) << number;
  }
  table.add(region(101));
  EXPECT_TRUE(is_whole(*find(table, 101)));
  EXPECT_TRUE(is_whole(*find(table, 100)));
}

// A lookup sees a changing region whole or not at all, and always sees a region that does not
// change.
TEST(RegionTable, IsReadWhileItChanges) {
  RegionTable table;
  table.add(region(5));
  for (std::uint32_t number = 10; number < 40; ++number) {
    table.add(region(number));
  }
  std::atomic<bool> ends = false;
  std::vector<std::thread> readers;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!ends) {
        wrong += find(table, 5).has_value() ? 0 : 1;
        table.find([&](const SharedRegion& each) {
          wrong += is_whole(each) ? 0 : 1;
          return false;
        });
      }
    });
  }
  for (std::uint32_t number = 40; number < 1'000'000; ++number) {
    const std::uint32_t before = number - 30;
    table.remove(static_cast<int>(before % 7), before);
    table.add(region(number));
  }
  ends = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace unisono::shm
