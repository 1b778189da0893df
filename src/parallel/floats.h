// Reads and writes elements of any float type as f32 for arithmetic, and rounds sums only once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/parallel/any_span.hpp"

namespace unisono::parallel {

// Returns true for float types narrower than f32.
bool is_narrow(Dtype dtype);

// Throws usage if the type is not a float of at most 32 bits, or differs from `dtype`.
void expect_float(const char* call, const char* name, Dtype has, Dtype dtype);

// Provides the elements as f32: in place if they are f32, else as a copy.
class ReadFloats {
 public:
  explicit ReadFloats(ConstAnySpan elements);
  std::span<const float> span() const { return span_; }

 private:
  std::vector<float> copy_;
  std::span<const float> span_;
};

// Provides memory to write elements as f32; finish() rounds each of them once. Previous values are
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

// Sums floats narrower than f32 so that each result is the f32 sum, rounded once. If one pass can
// sum all inputs, and if this costs at most twice the bytes of the fastest algorithm, the inputs
// are sent unchanged to the summing rank; otherwise they are sent as f32. Other calls are
// unchanged. Serves reduce, all_reduce, reduce_scatter and reduce_scatter_v.
class SumOnce {
 public:
  SumOnce() = default;
  SumOnce(const Communicator& communicator, const Call& call);
  SumOnce(SumOnce&&) noexcept = default;  // a move keeps the memory that `call` refers to
  SumOnce& operator=(SumOnce&&) noexcept = default;
  // Returns the call to run instead. Valid as long as this object.
  const Call& call() const { return call_; }
  // Call it after the call has run: writes the result.
  void finish();

 private:
  Call call_ = {};
  AnySpan out_ = {};
  std::vector<float> in_wide_;
  std::vector<float> out_wide_;
};

}  // namespace unisono::parallel
