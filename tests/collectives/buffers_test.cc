// The buffers that typed calls accept, and those that they refuse at compile time.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "unisono/unisono.hpp"

namespace unisono {
namespace {

using Floats = std::vector<float>;

static_assert(OutBuffer<Floats&> && OutBuffer<std::array<float, 4>&> && OutBuffer<float (&)[4]>);
static_assert(OutBuffer<std::span<float>> && OutBuffer<const std::span<float, 4>&>);
static_assert(!OutBuffer<const Floats&> && !OutBuffer<std::span<const float>>);
static_assert(!OutBuffer<std::vector<bool>&>);  // its elements are packed bits
static_assert(!OutBuffer<float*&> && !OutBuffer<float>);

// A temporary vector lives only until the blocking call returns.
static_assert(InBuffer<Floats> && !AsyncInBuffer<Floats> && !OutBuffer<Floats>);
static_assert(AsyncInBuffer<const Floats&> && AsyncInBuffer<std::span<const float>>);

static_assert(InBufferLike<const Floats&, std::span<float>>);
static_assert(!InBufferLike<std::vector<double>&, Floats&>);

template <typename In, typename Out>
concept Reducible = requires(Communicator& comm, In&& in, Out&& out) {
  comm.all_reduce(std::forward<In>(in), std::forward<Out>(out), sum);
};
template <typename In, typename Out>
concept AsyncReducible = requires(Communicator& comm, In&& in, Out&& out) {
  comm.all_reduce_async(std::forward<In>(in), std::forward<Out>(out), sum);
};
static_assert(Reducible<Floats, Floats&> && !AsyncReducible<Floats, Floats&>);
static_assert(AsyncReducible<const Floats&, std::span<float>>);
static_assert(!Reducible<std::vector<int>&, Floats&> && !Reducible<Floats&, const Floats&>);

// Returns true if a page of the memory belongs to the file `name`.
bool mapped_from(std::span<const std::byte> memory, const std::string& name) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    if (begin < first + memory.size() && first < end && line.find(name) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(Buffers, OfEveryKindAreReducedInPlace) {
  run_threads(2, [](Communicator& comm) {
    const float mine = comm.rank() == 0 ? 1 : 2;
    Floats vector(3, mine);
    std::array<float, 3> array = {mine, mine, mine};
    float plain[3] = {mine, mine, mine};
    comm.all_reduce(vector, sum);
    comm.all_reduce(array, sum);
    comm.all_reduce(plain, sum);
    EXPECT_EQ(vector, Floats(3, 3));
    EXPECT_EQ(Floats(array.begin(), array.end()), Floats(3, 3));
    EXPECT_EQ(Floats(plain, plain + 3), Floats(3, 3));
    comm.all_reduce(std::span<float, 3>(array), prod);
    comm.all_reduce(std::span(vector).first<2>(), prod);
    EXPECT_EQ(Floats(array.begin(), array.end()), Floats(3, 9));
    EXPECT_EQ(vector, Floats({9, 9, 3}));
  });
}

// Odd lengths at odd places: only the whole pages within are shared. Afterwards the shared pages
// are ordinary memory again, and can be shared again.
TEST(Buffers, ThatWereRegisteredAreOrdinaryMemoryAgain) {
  run_threads(2, [](Communicator& comm) {
    constexpr std::size_t kMostBytes = (std::size_t{5} << 20) + 4321;
    std::vector<std::byte> memory(kMostBytes);
    unsigned value = 1;
    for (const std::size_t bytes : {std::size_t{9000}, std::size_t{1} << 20, kMostBytes}) {
      for (int round = 0; round < 3; ++round) {
        const std::span<std::byte> part = std::span(memory).last(bytes);
        {
          const Region region = comm.register_buffer(part);
          for (std::byte& byte : part) {
            byte = static_cast<std::byte>(value++ * 2654435761U >> 24U);
          }
        }
        value -= static_cast<unsigned>(bytes);
        for (const std::byte& byte : part) {
          ASSERT_EQ(byte, static_cast<std::byte>(value++ * 2654435761U >> 24U))
              << &byte - part.data() << " of " << bytes << ", round " << round;
        }
        EXPECT_FALSE(mapped_from(part, "unisono-region"));
      }
    }
  });
}

TEST(Buffers, OfTwoKindsMeetInOneCall) {
  run_threads(2, [](Communicator& comm) {
    const std::array<int, 2> in = {comm.rank(), comm.rank() + 10};
    std::vector<int> out(4, -1);
    comm.all_gather(in, out);
    EXPECT_EQ(out, std::vector({0, 10, 1, 11}));
    int swapped[4] = {};
    comm.all_to_all_async(out, swapped).wait();
    EXPECT_EQ(std::vector(swapped, swapped + 4),
              comm.rank() == 0 ? std::vector({0, 10, 0, 10}) : std::vector({1, 11, 1, 11}));
    std::vector<int> part(2);
    comm.reduce_scatter(std::span<const int>(out), part, max);
    EXPECT_EQ(part, comm.rank() == 0 ? std::vector({0, 10}) : std::vector({1, 11}));
    comm.all_reduce(std::vector{1, 2}, part, sum);  // a temporary input
    EXPECT_EQ(part, std::vector({2, 4}));
  });
}

TEST(Buffers, ThatARankDoesNotUseMayBeLeftOut) {
  run_threads(3, [](Communicator& comm) {
    const bool root = comm.rank() == 1;
    std::vector<int> whole(root ? 6 : 0);
    std::iota(whole.begin(), whole.end(), 0);
    std::array<int, 2> part = {};
    const std::vector<std::size_t> counts(3, 2);
    root ? comm.scatter(whole, part, 1) : comm.scatter({}, part, 1);
    EXPECT_EQ(part[0], 2 * comm.rank());
    root ? comm.scatter_v(whole, part, counts, 1) : comm.scatter_v({}, part, counts, 1);
    EXPECT_EQ(part[1], 2 * comm.rank() + 1);
    root ? comm.gather(part, whole, 1) : comm.gather(part, {}, 1);
    root ? comm.gather_v(part, whole, counts, 1) : comm.gather_v(part, {}, counts, 1);
    EXPECT_EQ(whole, root ? std::vector({0, 1, 2, 3, 4, 5}) : std::vector<int>());
    std::array<int, 2> total = {};
    root ? comm.reduce(part, total, sum, 1) : comm.reduce(part, {}, sum, 1);
    EXPECT_EQ(total[0], root ? 0 + 2 + 4 : 0);
  });
}

}  // namespace
}  // namespace unisono
