#include "base/secret.h"

#include <gtest/gtest.h>

namespace unisono {
namespace {

// Test case 2 of RFC 4231.
TEST(Secret, HmacIsThatOfTheStandard) {
  const std::string_view message = "what do ya want for nothing?";
  EXPECT_EQ(hex(hmac_sha256("Jefe", std::as_bytes(std::span(message)))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Secret, ShaIsThatOfTheStandard) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Secret, EqualLooksAtEveryByteAndAtTheLength) {
  Digest a = sha256("a");
  Digest b = a;
  EXPECT_TRUE(equal(a, b));
  b.back() ^= std::byte{1};
  EXPECT_FALSE(equal(a, b));
  EXPECT_FALSE(equal(a, std::span(a).first(31)));
}

TEST(Secret, RandomDiffers) {
  EXPECT_EQ(random_hex(16).size(), 32U);
  EXPECT_NE(random_hex(16), random_hex(16));
}

}  // namespace
}  // namespace unisono
