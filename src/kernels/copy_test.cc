// Tests copies of all sizes and alignments, cached and streaming, on every SIMD target of this CPU.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/test_support.h"

namespace unisono::kernels {
namespace {

std::vector<std::size_t> sizes() {
  std::vector<std::size_t> result;
  for (std::size_t bytes = 0; bytes <= 300; ++bytes) {
    result.push_back(bytes);
  }
  for (const std::size_t bytes : {4095U, 4096U, 4097U, 4160U, 5000U, 8191U, 65537U, 1000003U}) {
    result.push_back(bytes);
  }
  return result;
}

TEST(CopyTest, CopiesEveryByteAndNoOther) {
  std::mt19937 random(1);
  for (const std::int64_t simd : all_targets()) {
    use_target(simd);
    for (const std::size_t bytes : sizes()) {
      for (const std::size_t misalignment : {0U, 1U, 7U, 63U}) {
        Buffer source(bytes, misalignment * 5 % 64);
        for (std::size_t i = 0; i < bytes; ++i) {
          source.data()[i] = static_cast<std::byte>(random());
        }
        for (const Store store : {Store::cached, Store::streaming}) {
          Buffer target(bytes, misalignment);
          copy(target.data(), source.data(), bytes, store);
          fence_streaming();
          EXPECT_TRUE(target.guards_intact()) << bytes;
          EXPECT_EQ(std::memcmp(target.data(), source.data(), bytes), 0) << bytes;
        }
      }
    }
  }
  use_target(0);
}

TEST(CopyTest, NothingFromNowhere) {
  copy(nullptr, nullptr, 0, Store::cached);
  copy(nullptr, nullptr, 0, Store::streaming);
}

}  // namespace
}  // namespace unisono::kernels
