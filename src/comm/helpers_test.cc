// Long calls that helper threads make in slices (ConnectOptions::threads), compared with results
// computed here and with those of one thread.
#include "comm/helpers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/statistics.hpp"

namespace unisono {
namespace {

using Floats = std::vector<float>;

Floats values(int rank, std::size_t count) {
  Floats all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = 0.1F * static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101) + 1e-3F;
  }
  return all;
}

void on_ranks(int ranks, int threads, const std::function<void(Communicator&)>& body) {
  ConnectOptions options;
  options.threads = threads;
  run_threads(ranks, body, options);
}

class HelpedCalls : public ::testing::TestWithParam<std::tuple<int, int, std::size_t>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  int threads() const { return std::get<1>(GetParam()); }
  std::size_t count() const { return std::get<2>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(
    Of, HelpedCalls,
    ::testing::Combine(::testing::Values(1, 2, 3), ::testing::Values(1, 2, 3, 5),
                       ::testing::Values(std::size_t{0}, std::size_t{1}, std::size_t{100'003})));

TEST_P(HelpedCalls, MoveEveryElement) {
  const auto n = static_cast<std::size_t>(ranks());
  on_ranks(ranks(), threads(), [&](Communicator& comm) {
    const int rank = comm.rank();
    const Floats mine = values(rank, count());
    const Floats pairs = values(rank, count() * n);
    Floats all(count() * n);
    Floats gathered_in_place(count() * n);
    const auto own = [&](Floats& parts) {
      return std::span(parts).subspan(static_cast<std::size_t>(rank) * count(), count());
    };
    std::copy(mine.begin(), mine.end(), own(gathered_in_place).begin());
    Floats turned(count() * n);
    Floats turned_in_place = pairs;
    Floats rooted = mine;
    comm.all_gather(mine, all);
    comm.all_gather(own(gathered_in_place), gathered_in_place);
    comm.all_to_all(pairs, turned);
    // Only one rank calls in place; even so, both ranks must cut the call.
    rank == 0 ? comm.all_to_all(turned_in_place, turned_in_place)
              : comm.all_to_all(pairs, turned_in_place);
    comm.broadcast(rooted, comm.size() - 1);
    comm.barrier();
    for (std::size_t from = 0; from < n; ++from) {
      const Floats theirs = values(static_cast<int>(from), count());
      const Floats theirs_all = values(static_cast<int>(from), count() * n);
      for (std::size_t i = 0; i < count(); ++i) {
        const std::size_t at = from * count() + i;
        ASSERT_EQ(all[at], theirs[i]);
        ASSERT_EQ(gathered_in_place[at], theirs[i]);
        ASSERT_EQ(turned[at], theirs_all[static_cast<std::size_t>(rank) * count() + i]);
        ASSERT_EQ(turned_in_place[at], turned[at]);
      }
    }
    ASSERT_EQ(rooted, values(comm.size() - 1, count()));
  });
}

// All reductions of one rank, concatenated.
template <typename Element>
std::vector<Element> reductions(Communicator& comm, const std::vector<Element>& parts,
                                const char* algorithm) {
  const auto n = static_cast<std::size_t>(comm.size());
  const std::size_t count = parts.size() / n;
  std::vector<Element> results;
  const auto keep = [&](const std::vector<Element>& result) {
    results.insert(results.end(), result.begin(), result.end());
  };
  const Dtype dtype = *kDtypeOf<Element>;
  for (const Reduction& reduction :
       {Reduction(sum), Reduction(max), Reduction(avg), Reduction::premul_sum(2.0)}) {
    std::vector<Element> whole(parts.size());
    comm.run({.collective = Collective::all_reduce,
              .in = parts.data(),
              .out = whole.data(),
              .count = parts.size(),
              .dtype = dtype,
              .reduction = reduction,
              .algorithm = algorithm});
    keep(whole);
    std::vector<Element> in_place = parts;
    comm.run({.collective = Collective::all_reduce,
              .in = in_place.data(),
              .out = in_place.data(),
              .count = parts.size(),
              .dtype = dtype,
              .reduction = reduction,
              .algorithm = algorithm});
    keep(in_place);
    std::vector<Element> mine(count);
    comm.run({.collective = Collective::reduce_scatter,
              .in = parts.data(),
              .out = mine.data(),
              .count = count,
              .dtype = dtype,
              .reduction = reduction,
              .algorithm = algorithm});
    keep(mine);
    in_place = parts;
    Element* const own = in_place.data() + static_cast<std::size_t>(comm.rank()) * count;
    comm.run({.collective = Collective::reduce_scatter,
              .in = in_place.data(),
              .out = own,
              .count = count,
              .dtype = dtype,
              .reduction = reduction,
              .algorithm = algorithm});
    keep({own, own + count});
  }
  return results;
}

template <typename Element>
void expect_the_same_bits(int ranks, int threads, std::size_t count, const char* algorithm) {
  std::vector<std::vector<Element>> of_one(static_cast<std::size_t>(ranks));
  std::vector<std::vector<Element>> of_several(of_one.size());
  const auto run = [&](int with, std::vector<std::vector<Element>>& into) {
    on_ranks(ranks, with, [&](Communicator& comm) {
      std::vector<Element> parts(count * static_cast<std::size_t>(ranks));
      const Floats given = values(comm.rank(), parts.size());
      std::transform(given.begin(), given.end(), parts.begin(),
                     [](float value) { return static_cast<Element>(value * 9); });
      into[static_cast<std::size_t>(comm.rank())] = reductions(comm, parts, algorithm);
    });
  };
  run(1, of_one);
  run(threads, of_several);
  EXPECT_EQ(of_one, of_several);
}

TEST_P(HelpedCalls, HaveTheBitsOfOneThread) {
  expect_the_same_bits<float>(ranks(), threads(), count(), "");
  expect_the_same_bits<std::int8_t>(ranks(), threads(), count(), "");
  expect_the_same_bits<float>(ranks(), threads(), count(), "reproducible");
}

// A ring starts the sum of each part of the vector at another rank, so cutting would change the
// result's bits.
TEST(HelpedAlgorithms, ThatSumInAnotherOrderAreNotCut) {
  expect_the_same_bits<float>(3, 4, 100'003, "ring");
}

TEST(HelpedGroups, PartsOfTheWorldHaveHelpersToo) {
  on_ranks(4, 3, [](Communicator& comm) {
    Communicator half = comm.split(comm.rank() % 2, comm.rank());
    Floats data = values(comm.rank(), 100'003);
    half.all_reduce(data, sum);
    Floats expected = values(comm.rank() % 2, 100'003);
    const Floats other = values(comm.rank() % 2 + 2, 100'003);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] += other[i];
    }
    EXPECT_EQ(data, expected);
    EXPECT_EQ(comm.split(comm.rank() == 3 ? -1 : 0, 0).size(), comm.rank() == 3 ? 0 : 3);
  });
}

// Two threads per rank, each with its own communicator, want the helpers at the same time.
TEST(HelpedGroups, TwoAtOnce) {
  on_ranks(2, 2, [](Communicator& comm) {
    Communicator other = comm.split(0, comm.rank());
    const auto sum_often = [rank = comm.rank()](Communicator& group) {
      const Floats a = values(0, 50'000);
      const Floats b = values(1, 50'000);
      for (int round = 0; round < 20; ++round) {
        Floats data = values(rank, 50'000);
        group.all_reduce(data, sum);
        for (std::size_t i = 0; i < data.size(); i += 997) {
          ASSERT_EQ(data[i], a[i] + b[i]);
        }
      }
    };
    std::thread beside([&] { sum_often(other); });
    sum_often(comm);
    beside.join();
  });
}

TEST(HelpedCallsMixed, WithAsynchronousOnesPendingOnSomeRanks) {
  on_ranks(2, 2, [](Communicator& comm) {
    Floats early = values(comm.rank(), 70'000);
    Floats late = values(comm.rank(), 70'000);
    Request request = comm.all_reduce_async(early, sum);
    if (comm.rank() == 0) {
      request.wait();
    }
    comm.all_reduce(late, sum);
    if (comm.rank() != 0) {
      request.wait();
    }
    EXPECT_EQ(early, late);
  });
}

TEST(HelpedStatistics, CountTheWholeCall) {
  on_ranks(2, 2, [](Communicator& comm) {
    const Floats mine = values(comm.rank(), 50'000);
    Floats all(100'000);
    comm.all_gather(mine, all);
    const Statistics statistics = comm.statistics();
    bool is_there = false;
    for (const Statistics::Row& row : statistics.rows) {
      EXPECT_NE(row.what, "all_gather_v");
      if (row.what == "all_gather" && row.bytes >= all.size() * sizeof(float)) {
        is_there = true;
      }
    }
    EXPECT_TRUE(is_there) << statistics.text();
  });
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no: " << part;
}

TEST(HelpedMistakes, AreThoseOfTheWholeCall) {
  on_ranks(2, 2, [](Communicator& comm) {
    const Floats mine(50'000);
    expect_part(error_of([&] {
                  comm.run({.collective = Collective::all_reduce,
                            .in = mine.data(),
                            .out = nullptr,
                            .count = mine.size(),
                            .dtype = Dtype::f32});
                }),
                "200000 bytes are written to it");
    Floats fine = values(comm.rank(), 50'000);  // the communicator still works
    comm.all_reduce(fine, sum);
    const Floats a = values(0, 50'000);
    const Floats b = values(1, 50'000);
    for (std::size_t i = 0; i < fine.size(); ++i) {
      ASSERT_EQ(fine[i], a[i] + b[i]);
    }
  });
}

TEST(HelpedMistakes, CountsThatDifferAreToldOnAllRanks) {
  on_ranks(2, 2, [](Communicator& comm) {
    Floats data(comm.rank() == 0 ? 50'000 : 60'000);
    expect_part(error_of([&] { comm.all_reduce(data, sum); }), "mismatch");
  });
}

TEST(HelpedMistakes, ARankThatDoesNotComeIsNamed) {
  on_ranks(2, 2, [](Communicator& comm) {
    Floats data(50'000);
    if (comm.rank() == 1) {
      while (!comm.failure()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return;
    }
    const std::string text = error_of([&] {
      comm.run({.collective = Collective::all_reduce,
                .in = data.data(),
                .out = data.data(),
                .count = data.size(),
                .dtype = Dtype::f32,
                .timeout_ms = 100});
    });
    expect_part(text, "timeout");
    expect_part(text, "rank 1");
  });
}

// Connects one rank of two. Returns the error.
std::string connecting(int rank, int size, int threads) {
  ConnectOptions options;
  options.rank = rank;
  options.size = size;
  options.job = "helpers-test";
  options.threads = threads;
  return error_of([&] { Communicator::connect(options); });
}

TEST(HelpedMistakes, RanksThatDifferInTheirNumberAreTold) {
  std::string of_other;
  std::thread other([&] { of_other = connecting(1, 2, 2); });
  expect_part(connecting(0, 2, 1), "give all ranks the same number");
  other.join();
  expect_part(of_other, "give all ranks the same number");
  expect_part(connecting(0, 1, 257), "1 to 256");
}

}  // namespace
}  // namespace unisono
