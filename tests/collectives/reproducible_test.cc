// `reproducible`: the same bits for any placement of the ranks, and for any vector length.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "base/hash.h"
#include "ranks.h"

namespace unisono::testing {
namespace {

// The magnitudes differ, so that sums depend on their order.
double value(int rank, std::size_t element) {
  const std::uint64_t bits =
      Hash().add(static_cast<std::uint64_t>(rank)).add(static_cast<std::uint64_t>(element)).value();
  const double mantissa = 1.0 + std::ldexp(static_cast<double>(bits >> 12), -52);
  return std::ldexp((bits & 1) != 0 ? -mantissa : mantissa, static_cast<int>((bits >> 1) % 12));
}

template <typename T>
T stored(double number) {
  if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(number));
  } else if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(number));
  } else if constexpr (std::is_same_v<T, f8e4m3>) {
    return to_f8e4m3(
        static_cast<float>(number / 64));  // so that sums neither overflow nor are all equal
  } else if constexpr (std::is_same_v<T, f8e5m2>) {
    return to_f8e5m2(static_cast<float>(number / 64));
  } else {
    return static_cast<T>(number);
  }
}

struct Sizes {
  std::size_t in = 0;
  std::size_t out = 0;
};

Sizes sizes_of(const Call& call, int rank, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  switch (call.collective) {
    case Collective::all_reduce:
    case Collective::scan:
    case Collective::exclusive_scan:
      return {call.count, call.count};
    case Collective::reduce:
      return {call.count, rank == call.root ? call.count : 0};
    default:
      return {call.count * n, call.count};
  }
}

constexpr Collective kReducing[] = {Collective::all_reduce, Collective::reduce,
                                    Collective::reduce_scatter, Collective::scan,
                                    Collective::exclusive_scan};

// Returns one rank's result of one call, as bytes.
template <typename T>
void append_result(Communicator& communicator, Call call, std::string& bytes) {
  const int rank = communicator.rank();
  call.root = communicator.size() - 1;
  const Sizes sizes = sizes_of(call, rank, communicator.size());
  std::vector<T> in;
  in.reserve(sizes.in);
  for (std::size_t i = 0; i < sizes.in; ++i) {
    // Products of larger numbers would overflow.
    const double number = value(rank, i);
    in.push_back(stored<T>(call.reduction.op == ReduceOp::prod ? 1 + number / 65536 : number));
  }
  std::vector<T> out(sizes.out);
  call.in = in.data();
  call.out = out.data();
  communicator.run(call);
  bytes.append(reinterpret_cast<const char*>(out.data()), out.size() * sizeof(T));
}

// Returns all results of one rank, one after the other.
template <typename T>
void append_results(Communicator& communicator, Dtype dtype, const std::string& per_call,
                    std::string& bytes) {
  for (const Collective collective : kReducing) {
    for (const std::size_t count : {1U, 5U, 333U, 5000U, 70'000U}) {
      append_result<T>(
          communicator,
          {.collective = collective, .count = count, .dtype = dtype, .algorithm = per_call}, bytes);
    }
  }
}

// The other operations, and types that are summed in a wider type.
template <typename T>
void append_others(Communicator& communicator, Dtype dtype, const std::string& per_call,
                   std::string& bytes) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter}) {
    for (const Reduction& reduction :
         {Reduction(sum), Reduction(avg), Reduction(prod), Reduction::premul_sum(0.3)}) {
      for (const std::size_t count : {5U, 5000U}) {
        append_result<T>(communicator,
                         {.collective = collective,
                          .count = count,
                          .dtype = dtype,
                          .reduction = reduction,
                          .algorithm = per_call},
                         bytes);
      }
    }
  }
}

void append_all(Communicator& communicator, const std::string& per_call, std::string& bytes) {
  append_results<float>(communicator, Dtype::f32, per_call, bytes);
  append_results<double>(communicator, Dtype::f64, per_call, bytes);
  append_results<bf16>(communicator, Dtype::bf16, per_call, bytes);
  append_results<f16>(communicator, Dtype::f16, per_call, bytes);
  append_others<float>(communicator, Dtype::f32, per_call, bytes);
  append_others<double>(communicator, Dtype::f64, per_call, bytes);
  append_others<bf16>(communicator, Dtype::bf16, per_call, bytes);
  append_others<f16>(communicator, Dtype::f16, per_call, bytes);
  append_others<f8e4m3>(communicator, Dtype::f8e4m3, per_call, bytes);
  append_others<f8e5m2>(communicator, Dtype::f8e5m2, per_call, bytes);
}

// Longer than a processor's cache.
void append_long(Communicator& communicator, const std::string& per_call, std::string& bytes) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter}) {
    append_result<float>(
        communicator,
        {.collective = collective, .count = 1'500'001, .dtype = Dtype::f32, .algorithm = per_call},
        bytes);
  }
}

struct Layout {
  int ranks = 1;
  int ranks_per_host = 1;
  int threads = 1;
};

enum class Asked : std::uint8_t { by_option, by_call };

using Append = void (*)(Communicator&, const std::string& per_call, std::string& bytes);

std::vector<std::string> results(const Layout& layout, Ranks kind, Asked asked,
                                 Append append = append_all) {
  const std::string job = comm::testing::unique_name("reproducible");
  const auto one = [&](int rank) {
    ConnectOptions options = test_options(rank, layout.ranks, job);
    if (layout.ranks_per_host < layout.ranks) {
      options.address = comm::testing::loopback_address(job);
      options.token = comm::testing::kToken;
      options.host = "host-" + std::to_string(rank / layout.ranks_per_host);
    }
    options.threads = layout.threads;
    options.algorithm = asked == Asked::by_option ? "reproducible" : "";
    Communicator communicator = Communicator::connect(options);
    const std::string per_call = asked == Asked::by_call ? "reproducible" : "";
    std::string bytes;
    append(communicator, per_call, bytes);
    return bytes;
  };
  return kind == Ranks::threads ? comm::testing::as_threads(layout.ranks, one)
                                : comm::testing::as_processes(layout.ranks, one);
}

// Up to 8 ranks have 36 layouts, 28 of them on several hosts; the full form has all 105 layouts of
// up to 14 ranks.
bool is_full() {
  return std::getenv("UNISONO_TEST_FULL") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

std::vector<Layout> layouts(int most_ranks) {
  std::vector<Layout> all;
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    for (int per_host = ranks; per_host >= 1; --per_host) {
      all.push_back({.ranks = ranks, .ranks_per_host = per_host});
    }
  }
  return all;
}

// Computes an all_reduce of floats in one process, in rank order.
TEST(Reproducible, IsTheSumInTheOrderOfTheRanks) {
  for (const Layout& layout : {Layout{3, 3}, Layout{5, 2}, Layout{6, 3}}) {
    const std::string bytes = results(layout, Ranks::threads, Asked::by_option).front();
    float first = 0;
    std::memcpy(&first, bytes.data(), sizeof(first));
    auto sum = static_cast<float>(value(0, 0));
    for (int rank = 1; rank < layout.ranks; ++rank) {
      sum += static_cast<float>(value(rank, 0));
    }
    EXPECT_EQ(first, sum);
    // The value of an element does not depend on the count. The first of the five counts is one
    // element, the second five, and so on.
    std::size_t at = 0;
    for (const std::size_t count : {1U, 5U, 333U, 5000U, 70'000U}) {
      EXPECT_EQ(bytes.compare(at, sizeof(float), bytes, 0, sizeof(float)), 0) << count;
      at += count * sizeof(float);
    }
  }
}

TEST(Reproducible, HasTheSameBitsInEveryLayout) {
  std::vector<std::string> expected;
  int compared = 0;
  for (const Layout& layout : layouts(is_full() ? 14 : 8)) {
    if (layout.ranks == layout.ranks_per_host) {
      expected = results(layout, Ranks::threads, Asked::by_option);
      continue;
    }
    ++compared;
    EXPECT_TRUE(results(layout, Ranks::threads, Asked::by_option) == expected)
        << layout.ranks << " ranks, " << layout.ranks_per_host << " on each host";
  }
  EXPECT_EQ(compared, is_full() ? 91 : 28);
}

TEST(Reproducible, HasTheSameBitsOfLongVectorsAndWithHelperThreads) {
  const auto of = [](const Layout& layout) {
    return results(layout, Ranks::threads, Asked::by_option, append_long);
  };
  const std::vector<std::string> expected = of({4, 4});
  for (const Layout& layout : {Layout{4, 2}, Layout{4, 1}, Layout{4, 4, 2}, Layout{4, 2, 2}}) {
    EXPECT_TRUE(of(layout) == expected)
        << layout.ranks_per_host << " ranks on each host, " << layout.threads << " threads";
  }
}

TEST(Reproducible, IsAskedForByACallOrByAnOption) {
  for (const Layout& layout : {Layout{4, 4}, Layout{4, 2}, Layout{5, 2}}) {
    EXPECT_TRUE(results(layout, Ranks::processes, Asked::by_call) ==
                results(layout, Ranks::processes, Asked::by_option));
  }
}

TEST(Reproducible, LeavesWhatOnlyMovesAlone) {
  const auto said = on_ranks(Ranks::threads, 3, [](Communicator& communicator) {
    std::int32_t number = communicator.rank() == 1 ? 41 : 0;
    communicator.run({.collective = Collective::broadcast,
                      .in = &number,
                      .out = &number,
                      .count = 1,
                      .dtype = Dtype::i32,
                      .root = 1,
                      .algorithm = "reproducible"});
    return std::to_string(number);
  });
  EXPECT_EQ(said, std::vector<std::string>(3, "41"));
}

}  // namespace
}  // namespace unisono::testing
