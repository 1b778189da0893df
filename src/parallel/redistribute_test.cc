// Compares redistribute() with a whole tensor that every rank computes for itself, and every
// conversion with its transpose: <Ax, y> = <x, A'y>, in integers, so that it holds exactly.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "unisono/allocator.hpp"
#include "unisono/parallel/placement.hpp"

namespace unisono::parallel {
namespace {

using Shape = std::vector<std::size_t>;

// Memory of a tensor with gaps, and with dimensions in any order.
struct Holder {
  std::vector<double> plain;
  Region region;
  Tensor tensor;
};

struct How {
  bool registered = false;
  unsigned order = 0;      // the innermost dimension, ...
  bool backwards = false;  // the first dimension has a negative stride
  std::size_t gap = 0;     // elements after each run of the innermost dimension
};

Holder make(Communicator& comm, const Shape& shape, const How& how) {
  Holder held;
  Tensor& tensor = held.tensor;
  tensor = Tensor::packed(nullptr, Dtype::f64, shape);
  std::ptrdiff_t stride = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t dim = (shape.size() - 1 - i + how.order) % shape.size();
    tensor.strides[dim] = stride;
    stride = stride * static_cast<std::ptrdiff_t>(shape[dim]) +
             (i == 0 ? static_cast<std::ptrdiff_t>(how.gap) : 0);
  }
  const auto count = static_cast<std::size_t>(stride) + how.gap + 1;
  double* memory = nullptr;
  if (how.registered) {
    held.region = comm.allocate(count * sizeof(double));
    memory = reinterpret_cast<double*>(held.region.bytes().data());
  } else {
    held.plain.resize(count);
    memory = held.plain.data();
  }
  if (how.backwards && !shape.empty() && shape[0] > 0) {
    memory += tensor.strides[0] * static_cast<std::ptrdiff_t>(shape[0] - 1);
    tensor.strides[0] = -tensor.strides[0];
  }
  tensor.data = memory;
  return held;
}

// Calls body(element, its position) in row-major order.
template <typename Body>
void for_each(const Tensor& tensor, const Body& body) {
  Shape at(tensor.dims(), 0);
  for (std::size_t i = 0; i < tensor.count(); ++i) {
    double* element = static_cast<double*>(tensor.data);
    for (std::size_t dim = 0; dim < at.size(); ++dim) {
      element += tensor.strides[dim] * static_cast<std::ptrdiff_t>(at[dim]);
    }
    body(*element, at);
    for (std::size_t dim = at.size(); dim-- > 0;) {
      if (++at[dim] < tensor.shape[dim]) {
        break;
      }
      at[dim] = 0;
    }
  }
}

Shape part_of(Shape whole, const Placement& placement, int ranks, int rank) {
  if (placement.kind == Placement::Kind::shard) {
    whole[placement.dim] = shard_range(whole[placement.dim], ranks, rank).count;
  }
  return whole;
}

// Returns the value at a position of the whole tensor, the same on all ranks; for a partial
// placement, one rank's summand.
double value_at(const Shape& at, const Placement& placement, int ranks, int rank,
                const Shape& whole, double salt) {
  std::size_t index = 0;
  for (std::size_t dim = 0; dim < at.size(); ++dim) {
    const std::size_t first = placement.kind == Placement::Kind::shard && placement.dim == dim
                                  ? shard_range(whole[dim], ranks, rank).first
                                  : 0;
    index = index * whole[dim] + at[dim] + first;
  }
  const double value = static_cast<double>(index % 97) + salt;
  return placement.kind == Placement::Kind::partial ? value * (rank + 1) : value;
}

double dot(const Tensor& a, const Tensor& b) {
  std::vector<double> values;
  for_each(a, [&](double value, const Shape&) { values.push_back(value); });
  double sum = 0;
  std::size_t i = 0;
  for_each(b, [&](double value, const Shape&) { sum += value * values[i++]; });
  return sum;
}

void fill(const Tensor& tensor, std::mt19937& random) {
  for_each(tensor, [&](double& value, const Shape&) {
    value = static_cast<double>(static_cast<int>(random() % 19) - 9);
  });
}

struct Case {
  Shape whole = {};
  Conversion conversion = {};
  How in = {}, out = {};
  std::uint32_t seed = 0;
  std::string text() const {
    return Tensor::packed(nullptr, Dtype::f64, whole).text() + " " + to_string(conversion.from) +
           " -> " + to_string(conversion.to) + (in.registered ? " registered" : "") + " seed " +
           std::to_string(seed);
  }
};

constexpr RedistributeOptions kMeant{.replicate_to_partial = true};

// Checks the transpose of the case on all ranks.
void expect_adjoint(Communicator& comm, const Case& one) {
  const auto [from, to] = one.conversion;
  const Conversion back = conjugate(one.conversion);
  const auto part = [&](const Placement& p) {
    return part_of(one.whole, p, comm.size(), comm.rank());
  };
  std::mt19937 random(one.seed * 64 + static_cast<std::uint32_t>(comm.rank()));
  Holder x = make(comm, part(from), one.in);
  Holder ax = make(comm, part(to), one.out);
  Holder y = make(comm, part(back.from), one.in);
  Holder aty = make(comm, part(back.to), one.out);
  fill(x.tensor, random);
  fill(y.tensor, random);
  redistribute(comm, x.tensor, from, ax.tensor, to, kMeant);
  redistribute(comm, y.tensor, back.from, aty.tensor, back.to, kMeant);
  std::vector<double> both = {dot(ax.tensor, y.tensor), dot(x.tensor, aty.tensor)};
  comm.all_reduce(both, sum);
  ASSERT_EQ(both[0], both[1]) << one.text() << " on " << comm.size() << " ranks";
}

// Checks every rank's part.
void expect_right(Communicator& comm, const Case& one) {
  const auto [from, to] = one.conversion;
  const int n = comm.size();
  Holder in = make(comm, part_of(one.whole, from, n, comm.rank()), one.in);
  Holder out = make(comm, part_of(one.whole, to, n, comm.rank()), one.out);
  for_each(in.tensor, [&](double& value, const Shape& at) {
    value = value_at(at, from, n, comm.rank(), one.whole, one.seed % 7);
  });
  redistribute(comm, in.tensor, from, out.tensor, to, kMeant);
  const double factor = from.kind == Placement::Kind::partial && to != from ? n * (n + 1) / 2 : 1;
  Placement plain = to;
  if (to.kind == Placement::Kind::partial && to != from) {
    return;  // summands are not unique; expect_adjoint() checks them
  }
  for_each(out.tensor, [&](double& value, const Shape& at) {
    ASSERT_EQ(value, factor * value_at(at, plain, n, comm.rank(), one.whole, one.seed % 7))
        << one.text() << " on " << n << " ranks";
  });
}

Case draw(std::uint32_t seed) {
  std::mt19937 random(seed);
  Case one{.seed = seed};
  const std::size_t dims = 1 + random() % 4;
  for (std::size_t dim = 0; dim < dims; ++dim) {
    one.whole.push_back(random() % 8 == 0 ? random() % 2 : 1 + random() % 9);
  }
  const auto placement = [&]() -> Placement {
    const auto kind = random() % 5;
    return kind == 0 ? Replicate() : kind == 1 ? Partial() : Shard(random() % dims);
  };
  one.conversion = {placement(), placement()};
  const auto how = [&] {
    return How{.order = static_cast<unsigned>(random() % dims),
               .backwards = random() % 4 == 0,
               .gap = random() % 3};
  };
  one.in = how();
  one.out = how();
  one.in.registered = one.out.registered = random() % 2 == 0;
  return one;
}

class Redistribute : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Redistribute, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(Redistribute, IsRightAndItsTransposeToo) {
  run_threads(GetParam(), [](Communicator& comm) {
    for (std::uint32_t seed = 0; seed < 250; ++seed) {
      const Case one = draw(seed);
      expect_right(comm, one);
      expect_adjoint(comm, one);
    }
  });
}

TEST(RedistributeForms, AveragesAndExtremesOfStrips) {
  run_threads(3, [](Communicator& comm) {
    for (const bool registered : {false, true}) {
      for (const ReduceOp op : {ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::prod}) {
        Holder in = make(comm, {4, 6}, {.registered = registered});
        Holder out = make(comm, {4, 2}, {.registered = registered});
        for_each(in.tensor, [&](double& value, const Shape& at) {
          value = static_cast<double>(at[1] * 3 + static_cast<std::size_t>(comm.rank()) + 1);
        });
        redistribute(comm, in.tensor, Partial(op), out.tensor, Shard(1));
        for_each(out.tensor, [&](double& value, const Shape& at) {
          const auto base =
              static_cast<double>((at[1] + 2 * static_cast<std::size_t>(comm.rank())) * 3);
          const double expected = op == ReduceOp::avg   ? base + 2
                                  : op == ReduceOp::min ? base + 1
                                  : op == ReduceOp::max ? base + 3
                                                        : (base + 1) * (base + 2) * (base + 3);
          ASSERT_EQ(value, expected) << to_string(op);
        });
      }
    }
  });
}

// With and without reading peers' memory, the sum does not wrap.
TEST(RedistributeForms, AveragesOfBytes) {
  run_threads(3, [](Communicator& comm) {
    std::vector<std::int8_t> plain(9, 100);
    std::vector<std::int8_t, allocator<std::int8_t>> registered(9, 100,
                                                                allocator<std::int8_t>(comm));
    for (const Tensor& in : {Tensor::of(plain, {9}), Tensor::of(registered, {9})}) {
      std::vector<std::int8_t, allocator<std::int8_t>> out(9, 0, allocator<std::int8_t>(comm));
      redistribute(comm, in, Partial(ReduceOp::avg), Tensor::of(out, {9}), Replicate());
      EXPECT_EQ(out[8], 100);
      redistribute(comm, in, Partial(ReduceOp::avg), Tensor::of(out, {9}).slice(0, 0, 3), Shard(0));
      EXPECT_EQ(out[2], 100);
    }
  });
}

// With and without reading peers' memory, the sum does not overflow.
TEST(RedistributeForms, AveragesOfGreatFloats) {
  const auto check = []<typename T>(Communicator& comm, T value) {
    std::vector<T> plain(9, value);
    std::vector<T, allocator<T>> registered(9, value, allocator<T>(comm));
    for (const Tensor& in : {Tensor::of(plain, {9}), Tensor::of(registered, {9})}) {
      std::vector<T, allocator<T>> out(9, T{}, allocator<T>(comm));
      redistribute(comm, in, Partial(ReduceOp::avg), Tensor::of(out, {9}), Replicate());
      EXPECT_EQ(std::memcmp(&out[8], &value, sizeof(T)), 0);
      redistribute(comm, in, Partial(ReduceOp::avg), Tensor::of(out, {9}).slice(0, 0, 3), Shard(0));
      EXPECT_EQ(std::memcmp(&out[2], &value, sizeof(T)), 0);
    }
  };
  run_threads(3, [&](Communicator& comm) {
    check(comm, 0x1.8p127F);
    check(comm, 0x1.8p1023);
    check(comm, to_f16(60'000));
    check(comm, to_bf16(0x1.8p127F));
    check(comm, to_f8e4m3(448));
    check(comm, to_f8e5m2(57'344));
  });
}

TEST(RedistributeForms, InPlace) {
  run_threads(3, [](Communicator& comm) {
    std::vector<float> whole(10);
    const Tensor out = Tensor::of(whole, {10});
    const Range mine = shard_range(10, 3, comm.rank());
    for (std::size_t i = 0; i < mine.count; ++i) {
      whole[mine.first + i] = static_cast<float>(mine.first + i);
    }
    redistribute(comm, out.slice(0, mine.first, mine.count), Shard(0), out, Replicate());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(whole[i], static_cast<float>(i));
    }
    redistribute(comm, out, Partial(), out, Replicate());
    ASSERT_EQ(whole[9], 27.0F);
  });
}

// Returns each rank's error, up to the end of the first line.
std::vector<std::string> told(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& comm) {
    try {
      body(comm);
    } catch (const Error& error) {
      const std::string what = error.what();
      said[static_cast<std::size_t>(comm.rank())] = what.substr(0, what.find('\n'));
    }
  });
  return said;
}

TEST(RedistributeErrors, NameBothRanksOfDifferentTensors) {
  const auto said = told(3, [](Communicator& comm) {
    const std::size_t columns = comm.rank() == 2 ? 5 : 4;
    std::vector<float> in(2 * columns);
    std::vector<float> out(6 * columns);
    redistribute(comm, Tensor::of(in, {2, columns}), Shard(0), Tensor::of(out, {6, columns}),
                 Replicate());
  });
  EXPECT_EQ(said[0],
            "mismatch: redistribute: rank 0 has f32 [6, 4] from shard(0) to replicate, and rank 2 "
            "f32 [6, 5] from shard(0) to replicate");
  EXPECT_EQ(said[2],
            "mismatch: redistribute: rank 2 has f32 [6, 5] from shard(0) to replicate, and rank 0 "
            "f32 [6, 4] from shard(0) to replicate");
}

TEST(RedistributeErrors, EndOnAllRanksWhereOneIsWrong) {
  const auto said = told(2, [](Communicator& comm) {
    std::vector<float> in(4);
    std::vector<float> out(comm.rank() == 1 ? 9 : 8);
    const std::size_t length = out.size();
    redistribute(comm, Tensor::of(in, {4}), Shard(0), Tensor::of(out, {length}), Replicate());
  });
  EXPECT_EQ(said[0], "mismatch: redistribute: rank 1 cannot take part");
  EXPECT_EQ(said[1],
            "usage: redistribute: `in` is f32 [4], and shard(0) of f32 [9] is f32 [5] on rank 1 of "
            "2");
}

TEST(RedistributeErrors, SayWhatCannotBe) {
  const auto of = [](const Placement& from, const Placement& to) {
    return told(2, [&](Communicator& comm) {
      std::vector<float> in(4);
      std::vector<float> out(4);
      redistribute(comm, Tensor::of(in, {2, 2}), from, Tensor::of(out, {2, 2}), to);
    })[0];
  };
  EXPECT_EQ(of(Shard(2), Replicate()),
            "usage: redistribute: dimension 2 of `in`, f32 [2, 2], does not exist");
  EXPECT_EQ(of(Replicate(), Partial()),
            "usage: redistribute: a conversion from replicate to partial keeps the data on rank 0 "
            "only, which is rarely intended");
  EXPECT_EQ(of(Partial(ReduceOp::band), Replicate()), "usage: redistribute: partial(band) of f32");
  EXPECT_THROW(conjugate({Partial(ReduceOp::max), Replicate()}), Error);
}

TEST(ShardRange, CoversWithPartsThatDifferByOne) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{1} << 62U}) {
    for (const int ranks : {1, 2, 3, 8, 1000}) {
      std::size_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range range = shard_range(size, ranks, rank);
        ASSERT_EQ(range.first, next);
        ASSERT_GE(range.count, size / static_cast<std::size_t>(ranks));
        ASSERT_LE(range.count, size / static_cast<std::size_t>(ranks) + 1);
        next += range.count;
      }
      ASSERT_EQ(next, size);
    }
  }
}

}  // namespace
}  // namespace unisono::parallel
