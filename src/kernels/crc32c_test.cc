#include "kernels/crc32c.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace unisono::kernels {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Computes the checksum by its definition, one bit at a time.
std::uint32_t slowly(std::span<const std::byte> bytes) {
  std::uint32_t sum = ~0U;
  for (const std::byte byte : bytes) {
    sum ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78U : 0);
    }
  }
  return ~sum;
}

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  std::uint64_t state = 7;
  for (std::byte& byte : data) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return data;
}

// Expects the values in RFC 3720 and in CRC catalogues.
TEST(Crc32c, IsTheUsualOne) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43U);
  EXPECT_EQ(crc32c(bytes_of("6789"), crc32c(bytes_of("12345"))), 0xe3069283U);
}

TEST(Crc32c, IsRightAtEveryLengthAndPlace) {
  const std::vector<std::byte> data = pattern(5000);
  for (std::size_t bytes = 0; bytes + 64 < data.size(); bytes += bytes < 1200 ? 1 : 37) {
    const auto part = std::span(data).subspan(bytes % 64, bytes);
    ASSERT_EQ(crc32c(part), slowly(part)) << bytes << " bytes";
  }
}

TEST(Crc32c, OfPartsIsThatOfTheWhole) {
  const std::vector<std::byte> data = pattern(4000);
  const std::uint32_t whole = crc32c(data);
  for (std::size_t first = 0; first <= data.size(); first += 41) {
    ASSERT_EQ(crc32c(std::span(data).subspan(first), crc32c(std::span(data).first(first))), whole);
  }
}

TEST(Crc32c, SeesEveryBit) {
  for (const std::size_t bytes : {1U, 7U, 24U, 100U, 700U, 4099U}) {
    std::vector<std::byte> data = pattern(bytes);
    const std::uint32_t before = crc32c(data);
    for (std::size_t bit = 0; bit < 8 * bytes; bit += bytes > 1000 ? 13 : 1) {
      data[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      EXPECT_NE(crc32c(data), before) << bytes << " bytes, bit " << bit;
      data[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
    EXPECT_NE(crc32c(std::span(data).first(bytes - 1)), before);
  }
}

}  // namespace
}  // namespace unisono::kernels
