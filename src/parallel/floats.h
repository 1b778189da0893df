// Elements of any float type as f32 for the arithmetic, and sums of them that are rounded once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/parallel/any_span.hpp"

namespace unisono::parallel {

// f32, or narrower.
bool is_narrow(Dtype dtype);

// Throws usage for a type that is no float of at most 32 bits, or not `dtype`.
void expect_float(const char* call, const char* name, Dtype has, Dtype dtype);

// The elements as f32: where they lie if they are, else a copy.
class ReadFloats {
 public:
  explicit ReadFloats(ConstAnySpan elements);
  std::span<const float> span() const { return span_; }

 private:
  std::vector<float> copy_;
  std::span<const float> span_;
};

// The same for elements that are written, each rounded once by finish(). What they are before is
// not read.
class WrittenFloats {
 public:
  explicit WrittenFloats(AnySpan elements);
  std::span<float> span() const { return span_; }
  void finish() const;

 private:
  AnySpan elements_;
  std::vector<float> copy_;
  std::span<float> span_;
};

// A call that sums floats narrower than f32, so that each result is the sum in f32, rounded once.
// All inputs travel to where they are summed, as they are, if that costs at most twice the bytes of
// the fastest algorithm and one pass can sum them; else they travel as f32. Other calls stay as
// they are. Serves reduce, all_reduce, reduce_scatter and reduce_scatter_v.
class SumOnce {
 public:
  SumOnce() = default;
  SumOnce(const Communicator& communicator, const Call& call);
  SumOnce(SumOnce&&) noexcept = default;  // what `call` refers to stays where it is
  SumOnce& operator=(SumOnce&&) noexcept = default;
  // To be run instead. Valid as long as this.
  const Call& call() const { return call_; }
  // Writes the result after the call has been run.
  void finish();

 private:
  Call call_ = {};
  AnySpan out_ = {};
  std::vector<float> in_wide_;
  std::vector<float> out_wide_;
};

}  // namespace unisono::parallel
