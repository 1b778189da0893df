#include "limits/sums.h"

#include <gtest/gtest.h>

#include <new>
#include <vector>

namespace unisono::bench {
namespace {

// Streaming stores need whole lines.
struct alignas(64) Line {
  float data[16] = {};
};

class Vectors {
 public:
  Vectors(int count, std::size_t elements) : lines_(static_cast<std::size_t>(count)) {
    for (std::vector<Line>& vector : lines_) {
      vector.resize(elements / 16 + 1);
      pointers_.push_back(vector.front().data);
    }
  }
  std::vector<float*>& pointers() { return pointers_; }

 private:
  std::vector<std::vector<Line>> lines_;
  std::vector<float*> pointers_;
};

void check_sum(int ranks, std::size_t begin, std::size_t end, bool stream) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks, [" << begin << ", " << end << "), stream "
                                  << stream);
  const std::size_t elements = end + 3;
  Vectors ins(ranks, elements);
  Vectors outs(ranks, elements);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < elements; ++i) {
      ins.pointers()[static_cast<std::size_t>(rank)][i] =
          static_cast<float>(i % 100 + 1) + static_cast<float>(rank * 1000);
    }
  }
  const std::vector<const float*> from(ins.pointers().begin(), ins.pointers().end());
  sum_into_all(from, outs.pointers(), begin, end, stream);
  for (const float* out : outs.pointers()) {
    for (std::size_t i = 0; i < elements; ++i) {
      float want = 0.0F;
      for (const float* in : from) {
        want += i >= begin && i < end ? in[i] : 0.0F;
      }
      ASSERT_EQ(out[i], want) << "element " << i;
    }
  }
}

TEST(SumIntoAll, AddsEveryElementOfTheRangeAndNoOther) {
  for (const int ranks : {2, 3, 8}) {
    for (const bool stream : {false, true}) {
      for (const std::size_t end : {0U, 1U, 15U, 16U, 2047U, 2048U, 2049U, 5000U}) {
        check_sum(ranks, 0, end, stream);
      }
      check_sum(ranks, 16, 4099, stream);
    }
  }
}

TEST(CopyBytes, CopiesEveryByteAndNoMore) {
  for (const bool stream : {false, true}) {
    for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 4099U}) {
      std::vector<Line> in(bytes / 64 + 2);
      std::vector<Line> out(bytes / 64 + 2);
      auto* from = reinterpret_cast<unsigned char*>(in.data());
      const auto* to = reinterpret_cast<const unsigned char*>(out.data());
      for (std::size_t i = 0; i < in.size() * 64; ++i) {
        from[i] = static_cast<unsigned char>(i % 251 + 1);
      }
      copy_bytes(out.data(), in.data(), bytes, stream);
      for (std::size_t i = 0; i < out.size() * 64; ++i) {
        ASSERT_EQ(to[i], i < bytes ? from[i] : 0) << "byte " << i << " of " << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace unisono::bench
