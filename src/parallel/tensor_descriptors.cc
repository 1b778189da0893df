#include "parallel/tensor_descriptors.h"

#include <algorithm>

#include "parallel/refuse.h"

namespace unisono::parallel {
namespace {

std::uint8_t byte_of(const Placement& placement) {
  const auto detail = placement.kind == Placement::Kind::shard
                          ? static_cast<unsigned>(placement.dim)
                          : static_cast<unsigned>(placement.op);
  return static_cast<std::uint8_t>(static_cast<unsigned>(placement.kind) << 4U | detail);
}

Placement placement_of(std::uint8_t byte) {
  Placement placement{.kind = static_cast<Placement::Kind>(byte >> 4U)};
  if (placement.kind == Placement::Kind::shard) {
    placement.dim = byte & 15U;
  } else {
    placement.op = static_cast<ReduceOp>(byte & 15U);
  }
  return placement;
}

void check_tensor(const char* name, const Tensor& tensor, const Placement& placement) {
  if (tensor.dims() > kMostDims || tensor.strides.size() != tensor.dims()) {
    refuse("redistribute",
           std::string("`") + name + "` has " + std::to_string(tensor.dims()) + " dimensions and " +
               std::to_string(tensor.strides.size()) + " strides",
           "give as many strides as dimensions, at most " + std::to_string(kMostDims));
  }
  if (tensor.data == nullptr && tensor.count() != 0) {
    refuse("redistribute", std::string("`") + name + "` is null",
           "pass memory for " + tensor.text());
  }
  if (placement.kind == Placement::Kind::shard && placement.dim >= tensor.dims()) {
    refuse("redistribute",
           "dimension " + std::to_string(placement.dim) + " of `" + name + "`, " + tensor.text() +
               ", does not exist",
           "dimensions are numbered from 0");
  }
}

void expect_part(const char* name, const Tensor& tensor, const Placement& placement,
                 const std::vector<std::size_t>& whole, const Communicator& communicator) {
  std::vector<std::size_t> part = whole;
  if (placement.kind == Placement::Kind::shard) {
    part[placement.dim] =
        shard_range(whole[placement.dim], communicator.size(), communicator.rank()).count;
  }
  if (tensor.shape != part) {
    refuse("redistribute",
           std::string("`") + name + "` is " + tensor.text() + ", and " + to_string(placement) +
               " of " + Tensor::packed(nullptr, tensor.dtype, whole).text() + " is " +
               Tensor::packed(nullptr, tensor.dtype, part).text() + " on rank " +
               std::to_string(communicator.rank()) + " of " + std::to_string(communicator.size()),
           "call shard_range() for the part of a dimension");
  }
}

std::string described(const TensorDescriptor& descriptor) {
  const std::vector<std::size_t> whole(descriptor.whole.begin(),
                                       descriptor.whole.begin() + descriptor.dims);
  return Tensor::packed(nullptr, static_cast<Dtype>(descriptor.dtype), whole).text() + " from " +
         to_string(placement_of(descriptor.from)) + " to " + to_string(placement_of(descriptor.to));
}

bool agree(const TensorDescriptor& a, const TensorDescriptor& b) {
  return a.dims == b.dims && a.dtype == b.dtype && a.from == b.from && a.to == b.to &&
         a.whole == b.whole;
}

}  // namespace

std::vector<std::size_t> whole_shape(const Communicator& communicator, const Tensor& in,
                                     const Placement& from, const Tensor& out,
                                     const Placement& to) {
  check_tensor("in", in, from);
  check_tensor("out", out, to);
  if (in.dtype != out.dtype || in.dims() != out.dims()) {
    refuse("redistribute", "`in` is " + in.text() + ", and `out` " + out.text(),
           "give both the same dtype and number of dimensions");
  }
  std::vector<std::size_t> whole = in.shape;
  if (from.kind == Placement::Kind::shard) {
    // If both are sharded along one dimension, the length of the whole tensor is unknown here.
    if (to == from) {
      if (in.shape != out.shape) {
        refuse("redistribute", "`in` is " + in.text() + ", and `out` " + out.text(),
               "give both the same shape");
      }
      return whole;
    }
    whole[from.dim] = out.shape[from.dim];
  }
  expect_part("in", in, from, whole, communicator);
  expect_part("out", out, to, whole, communicator);
  return whole;
}

std::vector<TensorDescriptor> exchange_descriptors(Communicator& communicator, const Tensor& in,
                                                   const Conversion& conversion,
                                                   const std::vector<std::size_t>& whole,
                                                   const std::string& wrong, int timeout_ms) {
  TensorDescriptor mine{.dtype = static_cast<std::uint8_t>(in.dtype),
                        .from = byte_of(conversion.from),
                        .to = byte_of(conversion.to),
                        .wrong = wrong.empty() ? 0U : 1U};
  if (wrong.empty()) {
    mine.dims = static_cast<std::uint8_t>(in.dims());
    std::copy(whole.begin(), whole.end(), mine.whole.begin());
    std::copy(in.shape.begin(), in.shape.end(), mine.shape.begin());
    std::copy(in.strides.begin(), in.strides.end(), mine.strides.begin());
    std::int64_t first = 0;
    std::int64_t last = 0;
    for (std::size_t dim = 0; dim < in.dims() && in.count() != 0; ++dim) {
      const auto reach = in.strides[dim] * static_cast<std::int64_t>(in.shape[dim] - 1);
      (reach < 0 ? first : last) += reach;
    }
    const auto bytes = static_cast<std::int64_t>(size_of(in.dtype));
    mine.before = -first * bytes;
    if (in.count() != 0) {
      mine.place = communicator.place_of(static_cast<const std::byte*>(in.data) - mine.before,
                                         static_cast<std::size_t>((last - first + 1) * bytes));
    }
  }
  std::vector<TensorDescriptor> descriptors(static_cast<std::size_t>(communicator.size()));
  communicator.run({.collective = Collective::all_gather,
                    .in = &mine,
                    .out = descriptors.data(),
                    .count = sizeof(TensorDescriptor),
                    .timeout_ms = timeout_ms});
  if (!wrong.empty()) {
    throw Error(ErrorCode::usage, wrong);
  }
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const TensorDescriptor& theirs = descriptors[static_cast<std::size_t>(rank)];
    const ErrorContext place{.rank = communicator.rank(), .peer = rank};
    if (theirs.wrong != 0) {
      throw Error(
          ErrorCode::mismatch,
          "redistribute: rank " + std::to_string(rank) + " cannot take part\nsee its own error",
          place);
    }
    if (!agree(theirs, mine)) {
      throw Error(ErrorCode::mismatch,
                  "redistribute: rank " + std::to_string(communicator.rank()) + " has " +
                      described(mine) + ", and rank " + std::to_string(rank) + " " +
                      described(theirs) + "\npass parts of the same tensor on all ranks",
                  place);
    }
  }
  return descriptors;
}

Tensor tensor_of(const Communicator& communicator, int peer, const TensorDescriptor& descriptor) {
  const auto dims = static_cast<std::ptrdiff_t>(descriptor.dims);
  Tensor tensor{.data = nullptr,
                .dtype = static_cast<Dtype>(descriptor.dtype),
                .shape = {descriptor.shape.begin(), descriptor.shape.begin() + dims},
                .strides = {descriptor.strides.begin(), descriptor.strides.begin() + dims}};
  std::int64_t reach = 0;
  for (std::size_t dim = 0; dim < tensor.dims() && tensor.count() != 0; ++dim) {
    const std::int64_t one = tensor.strides[dim] * static_cast<std::int64_t>(tensor.shape[dim] - 1);
    reach += one < 0 ? -one : one;
  }
  const auto bytes =
      static_cast<std::size_t>(reach + 1) * (tensor.count() == 0 ? 0 : size_of(tensor.dtype));
  const std::byte* first = communicator.peer_memory(peer, descriptor.place, bytes);
  if (first != nullptr) {
    tensor.data = const_cast<std::byte*>(first) + descriptor.before;
  }
  return tensor;
}

}  // namespace unisono::parallel
