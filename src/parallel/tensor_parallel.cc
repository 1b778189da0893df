// The beginning and end of tensor-parallel regions, and the distribution of heads.
#include "unisono/parallel/tensor_parallel.hpp"

#include <algorithm>
#include <string>

#include "parallel/floats.h"

namespace unisono::parallel {
namespace {

void expect_rows(const char* call, const char* name, std::size_t have, std::size_t rows,
                 std::size_t width) {
  if (have != rows * width) {
    throw Error(ErrorCode::usage, std::string(call) + ": `" + name + "` has " +
                                      std::to_string(have) + " elements, not " +
                                      std::to_string(rows) + " rows of " + std::to_string(width) +
                                      "\ncall RegionShape::outside() for the rows of a rank");
  }
}

// One of the four conversions: from sharded or whole rows to whole or sharded ones.
struct RegionConversion {
  const char* name;
  Communicator& axis;
  const RegionShape& shape;
  ConstAnySpan in;
  AnySpan out;

  Tensor tensor(ConstAnySpan data, bool outside) const {
    const std::size_t rows = outside ? shape.outside(axis).count : shape.rows;
    return Tensor::packed(const_cast<void*>(data.data()), data.dtype(), {rows, shape.width});
  }
  void go(bool inwards, const Placement& from, const Placement& to) const {
    const std::size_t outside = shape.outside(axis).count;
    expect_float(name, "in", in.dtype(), in.dtype());
    expect_float(name, "out", out.dtype(), in.dtype());
    expect_rows(name, inwards ? "outside" : "inside", in.size(), inwards ? outside : shape.rows,
                shape.width);
    expect_rows(name, inwards ? "inside" : "outside", out.size(), inwards ? shape.rows : outside,
                shape.width);
    if (from == to && in.data() == out.data()) {
      return;
    }
    redistribute(axis, tensor(in, inwards), from, tensor(out, !inwards), to);
  }
};

}  // namespace

void enter_region(Communicator& axis, const RegionShape& shape, ConstAnySpan outside,
                  AnySpan inside) {
  RegionConversion{"enter_region", axis, shape, outside, inside}.go(
      true, shape.sequence ? Shard(0) : Replicate(), Replicate());
}

void enter_region_backward(Communicator& axis, const RegionShape& shape, ConstAnySpan inside,
                           AnySpan outside) {
  RegionConversion{"enter_region_backward", axis, shape, inside, outside}.go(
      false, Partial(), shape.sequence ? Shard(0) : Replicate());
}

void leave_region(Communicator& axis, const RegionShape& shape, ConstAnySpan inside,
                  AnySpan outside) {
  RegionConversion{"leave_region", axis, shape, inside, outside}.go(
      false, Partial(), shape.sequence ? Shard(0) : Replicate());
}

void leave_region_backward(Communicator& axis, const RegionShape& shape, ConstAnySpan outside,
                           AnySpan inside) {
  RegionConversion{"leave_region_backward", axis, shape, outside, inside}.go(
      true, shape.sequence ? Shard(0) : Replicate(), Replicate());
}

}  // namespace unisono::parallel
