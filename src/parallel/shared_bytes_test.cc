// Compares the search for shared memory with sets of bytes.
#include "parallel/shared_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace unisono::parallel {
namespace {

void add_bytes(const Tensor& tensor, std::size_t dim, std::byte* at, std::set<std::byte*>& bytes) {
  const std::size_t size = size_of(tensor.dtype);
  for (std::size_t i = 0; dim < tensor.dims() && i < tensor.shape[dim]; ++i) {
    add_bytes(tensor, dim + 1, at + tensor.strides[dim] * static_cast<std::ptrdiff_t>(i * size),
              bytes);
  }
  for (std::size_t i = 0; dim == tensor.dims() && i < size; ++i) {
    bytes.insert(at + i);
  }
}

std::set<std::byte*> bytes_of(const Tensor& tensor) {
  std::set<std::byte*> bytes;
  add_bytes(tensor, 0, static_cast<std::byte*>(tensor.data), bytes);
  return bytes;
}

TEST(SharedBytes, AreFoundInRandomTensors) {
  std::vector<std::byte> memory(4096);
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto draw = [&] {
    Tensor tensor{.data = memory.data() + 2048 + below(64),
                  .dtype = std::array{Dtype::u8, Dtype::f16, Dtype::f64}[below(3)]};
    for (std::size_t dim = below(4); dim > 0; --dim) {
      tensor.shape.push_back(below(8) == 0 ? 0 : 1 + below(4));
      tensor.strides.push_back(static_cast<std::ptrdiff_t>(below(17)) - 8);
    }
    return tensor;
  };
  int shared = 0;
  constexpr int kPairs = 20'000;
  for (int i = 0; i < kPairs; ++i) {
    const Tensor a = draw();
    const Tensor b = draw();
    const std::set<std::byte*> of_a = bytes_of(a);
    bool wanted = false;
    for (std::byte* byte : bytes_of(b)) {
      wanted = wanted || of_a.contains(byte);
    }
    shared += wanted ? 1 : 0;
    ASSERT_EQ(share_bytes(a, b), wanted) << "pair " << i;
  }
  EXPECT_GT(shared, kPairs / 10);
  EXPECT_LT(shared, kPairs * 9 / 10);
}

TEST(SharedBytes, AreFoundAmongManyTensors) {
  std::vector<float> memory(100);
  std::vector<Tensor> in = {{}};
  std::vector<Tensor> out = {{}};
  for (std::size_t i = 0; i < 10; ++i) {
    in.push_back(Tensor::packed(&memory[10 * i], Dtype::f32, {5}));
    out.push_back(Tensor::packed(&memory[95 - 10 * i], Dtype::f32, {5}));
  }
  EXPECT_FALSE(find_shared_bytes(in, out));
  in[4].shape = {6};
  EXPECT_EQ(find_shared_bytes(in, out), std::pair(std::size_t{4}, std::size_t{7}));
  // The columns of one matrix.
  const Tensor matrix = Tensor::packed(memory.data(), Dtype::f32, {10, 10});
  in = {matrix.slice(1, 0, 4)};
  out = {matrix.slice(1, 4, 6)};
  EXPECT_FALSE(find_shared_bytes(in, out));
  out = {matrix.slice(1, 3, 7)};
  EXPECT_TRUE(find_shared_bytes(in, out));
}

// Eight dimensions whose strides have nothing in common.
TEST(SharedBytes, AreAssumedWhereTheSearchIsLong) {
  std::vector<std::byte> memory(1 << 20);
  Tensor a{.data = memory.data(), .dtype = Dtype::u8};
  Tensor b{.data = memory.data() + 1, .dtype = Dtype::u8};
  for (const std::ptrdiff_t stride : {1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049}) {
    a.shape.push_back(20);
    a.strides.push_back(2 * stride);
    b.shape.push_back(20);
    b.strides.push_back(2 * stride + 18);
  }
  EXPECT_TRUE(share_bytes(a, b));
}

}  // namespace
}  // namespace unisono::parallel
