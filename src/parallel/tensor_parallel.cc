// The beginning and end of tensor-parallel regions, and the distribution of heads.
#include "unisono/parallel/tensor_parallel.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

// One of the four conversions: between sharded or whole rows, in both directions.
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

void leave_by_tree(const char* name, Communicator& axis, const RegionShape& shape, TreeSum inside,
                   std::span<const Leaves> leaves, AnySpan outside) {
  const std::size_t rows = shape.outside(axis).count;
  expect_float(name, "out", outside.dtype(), outside.dtype());
  expect_rows(name, "inside", inside.shape().count, shape.rows, shape.width);
  expect_rows(name, "outside", outside.size(), rows, shape.width);
  if (inside.shape().dtype != Dtype::f32) {
    throw Error(ErrorCode::usage, std::string(name) + ": the blocks are " +
                                      std::string(to_string(inside.shape().dtype)) +
                                      "\nsum them in f32; the result is rounded once");
  }
  const WrittenFloats out(outside);
  if (shape.sequence) {
    std::vector<std::size_t> parts;
    for (int rank = 0; rank < axis.size(); ++rank) {
      parts.push_back(shard_range(shape.rows, axis.size(), rank).count * shape.width);
    }
    std::move(inside).scatter_async(axis, leaves, parts).finish().sum(out.span().data());
  } else {
    inside.all_reduce(axis, leaves, out.span().data());
  }
  out.finish();
}

}  // namespace

TreeSum sum_of_blocks(std::size_t count, std::size_t blocks, const Leaves& mine,
                      const std::function<void(std::size_t block, std::span<float> out)>& product) {
  TreeSum sum({.count = count, .leaves = blocks, .first = mine.first});
  std::vector<float> out(count);
  for (std::size_t block = mine.first; block < mine.first + mine.count; ++block) {
    product(block, out);
    sum.add(block, out.data());
  }
  return sum;
}

void enter_region_backward(Communicator& axis, const RegionShape& shape, TreeSum inside,
                           std::span<const Leaves> leaves, AnySpan outside) {
  leave_by_tree("enter_region_backward", axis, shape, std::move(inside), leaves, outside);
}

void leave_region(Communicator& axis, const RegionShape& shape, TreeSum inside,
                  std::span<const Leaves> leaves, AnySpan outside) {
  leave_by_tree("leave_region", axis, shape, std::move(inside), leaves, outside);
}

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
