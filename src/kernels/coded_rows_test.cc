// Compares coded rows with their definition on every SIMD target that this CPU can run.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/coded_rows.h"
#include "kernels/test_support.h"
#include "unisono/types.hpp"

namespace unisono::kernels {
namespace {

class CodedRows : public ::testing::Test {
 protected:
  void TearDown() override { use_target(0); }
};

std::vector<float> draw(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(count);
  for (float& value : row) {
    value = to_float(to_bf16(normal(random)));
  }
  return row;
}

// Rounds a scaled number to the nearest code, as a float.
using Rounded = float (*)(float scaled);
struct Code {
  Dtype dtype;
  float most;
  Rounded round;
};
// i8 has no -0, hence the added zero.
const Code kCodes[] = {
    {Dtype::i8, 127.0F, [](float scaled) { return std::nearbyintf(scaled) + 0.0F; }},
    {Dtype::f8e4m3, 448.0F, [](float scaled) { return to_float(to_f8e4m3(scaled)); }}};

// Encodes and decodes a row by the definition, one element at a time.
std::vector<float> decoded(const std::vector<float>& row, const Code& code, float factor = 1) {
  std::vector<float> result(row.size());
  for (std::size_t first = 0; first < row.size(); first += 128) {
    const std::size_t end = std::min(row.size(), first + 128);
    float greatest = 0;
    for (std::size_t i = first; i < end; ++i) {
      greatest = std::max(greatest, std::fabs(row[i]));
    }
    for (std::size_t i = first; i < end; ++i) {
      const float rounded = greatest == 0 ? 0.0F : code.round(row[i] * (code.most / greatest));
      result[i] = rounded * ((greatest / code.most) * factor);
    }
  }
  return result;
}

std::vector<std::uint16_t> to_bf16s(const std::vector<float>& row) {
  std::vector<std::uint16_t> bits(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    bits[i] = to_bf16(row[i]).bits;
  }
  return bits;
}

void check_formula(const Code& code, std::size_t count, const std::string& what) {
  const std::vector<float> row = draw(count, static_cast<unsigned>(count));
  const std::vector<float> expected = decoded(row, code);
  std::vector<std::byte> coded(coded_bytes(count));
  std::vector<float> f32(count, -1.0F);
  const CodedRowFunctions floats = find_coded_rows(Dtype::f32, code.dtype);
  floats.encode(coded.data(), row.data(), count);
  floats.decode(f32.data(), coded.data(), count, Store::cached);
  EXPECT_EQ(f32, expected) << what;

  const CodedRowFunctions halves = find_coded_rows(Dtype::bf16, code.dtype);
  const auto bits = to_bf16s(row);
  std::vector<std::byte> again(coded_bytes(count));
  std::vector<std::uint16_t> back(count);
  halves.encode(again.data(), bits.data(), count);
  EXPECT_EQ(again, coded) << what;
  for (const Store store : {Store::cached, Store::streaming}) {
    halves.decode(back.data(), again.data(), count, store);
    EXPECT_EQ(back, to_bf16s(expected)) << what;
  }
}

TEST_F(CodedRows, AreAsTheFormulaSays) {
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const Code& code : kCodes) {
      for (const std::size_t count : {0U, 1U, 3U, 127U, 128U, 129U, 300U, 2048U}) {
        check_formula(code, count,
                      std::string(hwy::TargetName(target)) + " " +
                          std::string(to_string(code.dtype)) + " " + std::to_string(count));
      }
    }
  }
}

// Returns a row with random bits, including blocks that cannot be coded and blocks of zeros.
std::vector<std::byte> draw_bits(std::size_t count, Dtype dtype, unsigned seed) {
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::vector<std::byte> row(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t sign = random() % 2 << 31;
    const std::size_t kind = (i / 128 + seed) % 4;  // kind of block
    const std::uint32_t magnitude = kind == 0   ? (random() % 0x3000000U) + 0x3e000000U
                                    : kind == 1 ? random() % 0x7f800000U
                                    : kind == 2 ? random() % 0x00100000U
                                                : random() % 0x7fffffffU;
    const float value = std::bit_cast<float>(sign | magnitude);
    const std::uint16_t narrow = dtype == Dtype::bf16 ? to_bf16(value).bits : to_f16(value).bits;
    std::memcpy(row.data() + i * size_of(dtype),
                dtype == Dtype::f32 ? static_cast<const void*>(&value) : &narrow, size_of(dtype));
  }
  return row;
}

// Compares round() and rounded_sum() with encoding and decoding.
void check_in_place(Dtype dtype, const Code& code, std::size_t count, const std::string& what) {
  constexpr std::size_t kRows = 21;
  const CodedRowFunctions functions = find_coded_rows(dtype, code.dtype);
  std::vector<std::vector<std::byte>> rows;
  std::vector<std::vector<std::byte>> coded(kRows, std::vector<std::byte>(coded_bytes(count)));
  std::vector<const void*> from;
  std::vector<const void*> from_coded;
  std::vector<float> factors;
  for (unsigned i = 0; i < kRows; ++i) {
    rows.push_back(draw_bits(count, dtype, i));
    functions.encode(coded[i].data(), rows[i].data(), count);
    from.push_back(rows[i].data());
    from_coded.push_back(coded[i].data());
    factors.push_back(static_cast<float>(i % 5) - 1.3F);
    std::vector<std::byte> decoded(rows[i].size());
    functions.decode(decoded.data(), coded[i].data(), count, Store::cached);
    for (const Store store : {Store::cached, Store::streaming}) {
      std::vector<std::byte> targets[2] = {std::vector<std::byte>(decoded.size()),
                                           std::vector<std::byte>(decoded.size())};
      void* const to[] = {targets[0].data(), targets[1].data()};
      functions.round(to, 2, rows[i].data(), count, store);
      EXPECT_EQ(targets[0], decoded) << what << " row " << i;
      EXPECT_EQ(targets[1], decoded) << what << " row " << i;
    }
  }
  const std::vector<std::byte> residual = draw_bits(count, dtype, 100);
  for (const int used : {0, 1, 3, 8, static_cast<int>(kRows)}) {
    for (const void* addend : {static_cast<const void*>(nullptr), from[0], from[2],
                               static_cast<const void*>(residual.data())}) {
      for (const float* given :
           {static_cast<const float*>(nullptr), std::as_const(factors).data()}) {
        std::vector<std::byte> expected(residual.size());
        std::vector<std::byte> sums(residual.size());
        functions.weighted_sum(expected.data(), addend, from_coded.data(), given, used, count);
        functions.rounded_sum(sums.data(), addend, from.data(), given, used, count, from.data(),
                              used / 2);
        EXPECT_EQ(sums, expected) << what << " " << used << " rows";
      }
    }
  }
}

TEST_F(CodedRows, AreTheSameWhereTheyLie) {
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const Code& code : kCodes) {
      for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f32}) {
        for (const std::size_t count : {1U, 37U, 128U, 129U, 512U, 777U}) {
          check_in_place(dtype, code, count,
                         std::string(hwy::TargetName(target)) + " " +
                             std::string(to_string(code.dtype)) + " of " +
                             std::string(to_string(dtype)) + " " + std::to_string(count));
        }
      }
    }
  }
}

// The bound is 1/16 of the element, or half the least code.
TEST_F(CodedRows, FloatsAreOffByTheirBound) {
  std::vector<float> row = draw(4096, 7);
  for (std::size_t i = 0; i < row.size(); i += 3) {
    row[i] *= 0x1p-12F;
  }
  const CodedRowFunctions functions = find_coded_rows(Dtype::f32, Dtype::f8e4m3);
  std::vector<std::byte> coded(coded_bytes(row.size()));
  std::vector<float> read(row.size());
  functions.encode(coded.data(), row.data(), row.size());
  functions.decode(read.data(), coded.data(), row.size(), Store::cached);
  for (std::size_t first = 0; first < row.size(); first += 128) {
    float greatest = 0;
    for (std::size_t i = first; i < first + 128; ++i) {
      greatest = std::max(greatest, std::fabs(row[i]));
    }
    for (std::size_t i = first; i < first + 128; ++i) {
      const float bound = std::max(std::fabs(row[i]) / 16, greatest / 448 / 1024);
      EXPECT_LE(std::fabs(read[i] - row[i]), bound * 1.0001F) << i;
    }
  }
}

void check_sums(const Code& code, std::size_t count, const std::string& what) {
  const CodedRowFunctions functions = find_coded_rows(Dtype::bf16, code.dtype);
  const std::vector<float> factors = {0.3F, -1.7F, 0.9F};
  std::vector<std::vector<std::byte>> coded;
  std::vector<const void*> rows;
  const std::vector<float> residual = draw(count, 9);
  std::vector<float> expected = residual;
  for (unsigned i = 0; i < 3; ++i) {
    const std::vector<float> row = draw(count, i);
    coded.emplace_back(coded_bytes(count));
    functions.encode(coded.back().data(), to_bf16s(row).data(), count);
    const std::vector<float> terms = decoded(row, code, factors[i]);
    for (std::size_t j = 0; j < count; ++j) {
      expected[j] += terms[j];
    }
  }
  for (const auto& row : coded) {
    rows.push_back(row.data());
  }
  std::vector<std::uint16_t> sums = to_bf16s(residual);
  functions.weighted_sum(sums.data(), sums.data(), rows.data(), factors.data(), 3, count);
  EXPECT_EQ(sums, to_bf16s(expected)) << what;
}

TEST_F(CodedRows, SumsAreThoseOfTheDecodedRows) {
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const Code& code : kCodes) {
      for (const std::size_t count : {1U, 129U, 1000U}) {
        check_sums(code, count, std::string(hwy::TargetName(target)) + " " + std::to_string(count));
      }
    }
  }
}

TEST_F(CodedRows, WhatIsNoNumberIsSeen) {
  for (const Code& code : kCodes) {
    const CodedRowFunctions functions = find_coded_rows(Dtype::f32, code.dtype);
    std::vector<float> row(256, 1.0F);
    row[3] = std::numeric_limits<float>::infinity();
    std::vector<std::byte> coded(coded_bytes(row.size()));
    functions.encode(coded.data(), row.data(), row.size());
    functions.decode(row.data(), coded.data(), row.size(), Store::cached);
    EXPECT_TRUE(std::isnan(row[0]) && std::isnan(row[127]));
    EXPECT_EQ(row[128], 1.0F);
    row.assign(256, 1e-38F);
    functions.encode(coded.data(), row.data(), row.size());
    functions.decode(row.data(), coded.data(), row.size(), Store::cached);
    EXPECT_EQ(row, std::vector<float>(256, 0.0F));
    EXPECT_EQ(find_coded_rows(Dtype::i8, code.dtype).encode, nullptr);
  }
  EXPECT_EQ(find_coded_rows(Dtype::f32, Dtype::f8e5m2).encode, nullptr);
}

}  // namespace
}  // namespace unisono::kernels
