#include "base/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace unisono {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The values that RFC 3720 and the catalogues of CRCs give.
TEST(Checksum, IsCrc32c) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43U);
  EXPECT_EQ(crc32c(bytes_of("6789"), crc32c(bytes_of("12345"))), 0xe3069283U);
}

// It is part of what travels: a machine without the instruction must find the same.
TEST(Checksum, IsTheSameEverywhere) {
  std::vector<std::byte> data(100);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>(i);
  }
  const std::span<const std::byte> all(data);
  // Three parts of 32 bytes; the last takes what is left.
  const std::uint32_t sums[] = {~crc32c(all.first(32)), ~crc32c(all.subspan(32, 32)),
                                ~crc32c(all.subspan(64))};
  std::vector<std::byte> little;
  for (const std::uint32_t sum : sums) {
    for (int shift = 0; shift < 32; shift += 8) {
      little.push_back(static_cast<std::byte>(sum >> shift));
    }
  }
  EXPECT_EQ(checksum(all), crc32c(little));
}

TEST(Checksum, SeesEveryBit) {
  for (const std::size_t bytes : {1U, 7U, 23U, 24U, 100U, 4099U}) {
    std::vector<std::byte> data(bytes, std::byte{0x5a});
    const std::uint32_t before = checksum(data);
    for (std::size_t bit = 0; bit < 8 * bytes; bit += bytes > 1000 ? 13 : 1) {
      data[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      EXPECT_NE(checksum(data), before) << bytes << " bytes, bit " << bit;
      data[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
    EXPECT_NE(checksum(std::span(data).first(bytes - 1)), before);
  }
}

TEST(Checksum, SeesPartsThatChangedPlaces) {
  std::vector<std::byte> data(96, std::byte{1});
  std::fill(data.begin(), data.begin() + 32, std::byte{2});
  const std::uint32_t before = checksum(data);
  std::rotate(data.begin(), data.begin() + 32, data.end());
  EXPECT_NE(checksum(data), before);
}

}  // namespace
}  // namespace unisono
