// Features beyond a single collective call: groups of ranks, send and recv, group(), plans,
// registered memory, very long vectors.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalog.h"
#include "base/collectives.h"
#include "base/env.h"
#include "encoded_ranks.h"
#include "ranks.h"
#include "unisono/allocator.hpp"

namespace unisono::testing {
namespace {

std::string wrong_unless(bool right, const std::string& what) {
  return right ? "" : what + "; ";
}

std::vector<int> sequence(int first, std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class Forms : public ::testing::TestWithParam<Ranks> {
 protected:
  static void run(int ranks, const RankBody& body) {
    const auto said = on_ranks(GetParam(), ranks, body);
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      EXPECT_EQ(said[rank], "") << "rank " << rank;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(On, Forms, ::testing::Values(Ranks::processes, Ranks::threads),
                         [](const auto& kind) { return to_string(kind.param); });

// Returns the sum of the old ranks of a group's members, computed by the group.
int sum_over(Communicator& group, int value) {
  std::vector<int> data = {value};
  group.all_reduce(std::span(data), sum);
  return data[0];
}

TEST_P(Forms, SplitByColorAndKey) {
  run(5, [](Communicator& comm) {
    const int rank = comm.rank();
    Communicator parity = comm.split(rank % 2, -rank);  // in falling order
    const int members = rank % 2 == 0 ? 3 : 2;
    std::string wrong = wrong_unless(parity.size() == members, "size");
    wrong += wrong_unless(parity.rank() == members - 1 - rank / 2, "order of the keys");
    wrong += wrong_unless(sum_over(parity, rank) == (rank % 2 == 0 ? 6 : 4), "sum");
    Communicator some = comm.split(rank < 2 ? 7 : -1, 0);
    wrong += wrong_unless(some.size() == (rank < 2 ? 2 : 0), "negative color");
    if (some.size() != 0) {
      wrong += wrong_unless(sum_over(some, rank) == 1, "sum of some");
      Communicator single = some.split(rank, 0);
      wrong += wrong_unless(single.size() == 1 && sum_over(single, rank) == rank, "split of split");
    }
    Communicator inner = parity.split(0, rank);  // in rising order again
    wrong += wrong_unless(inner.rank() == rank / 2, "order in a split of a split");
    return wrong + wrong_unless(sum_over(inner, rank) == sum_over(parity, rank), "inner sum");
  });
}

TEST_P(Forms, SixtyFourGroups) {
  run(3, [](Communicator& comm) {
    std::vector<Communicator> groups;
    for (int i = 0; i < 64; ++i) {
      groups.push_back(comm.split(0, i % 2 == 0 ? comm.rank() : -comm.rank()));
    }
    std::string wrong;
    for (int round = 0; round < 2; ++round) {
      std::vector<std::vector<int>> data(groups.size());
      std::vector<Request> requests;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        data[i] = sequence(static_cast<int>(i) * (comm.rank() + 1), 100);
        requests.push_back(groups[i].all_reduce_async(std::span(data[i]), sum));
      }
      for (std::size_t i = groups.size(); i-- > 0;) {
        requests[i].wait();
        const int first = static_cast<int>(i) * 6;
        wrong += wrong_unless(data[i][0] == first && data[i][99] == first + 3 * 99,
                              "group " + std::to_string(i));
      }
    }
    return wrong;
  });
}

// Together, their idle lanes would keep more slots than a rank has.
TEST_P(Forms, ManyGroupsShareTheSlotsOfARank) {
  run(3, [](Communicator& comm) {
    std::vector<Communicator> groups;
    std::vector<int> data(std::size_t{1} << 18, 1);
    std::string wrong;
    for (int i = 0; i < 80; ++i) {
      std::fill(data.begin(), data.end(), i);
      groups.push_back(comm.split(0, comm.rank()));
      groups.back().all_reduce(std::span(data), sum);
      wrong +=
          wrong_unless(data.front() == 3 * i && data.back() == 3 * i, "group " + std::to_string(i));
    }
    return wrong;
  });
}

TEST_P(Forms, TagsMayBeReceivedInAnyOrder) {
  run(2, [](Communicator& comm) {
    const std::size_t lengths[] = {0, 1, 70, 5000, 300'000};
    std::vector<std::vector<int>> got;
    std::vector<Request> requests;
    std::vector<std::vector<int>> sent;
    for (int tag = 0; tag < 5; ++tag) {
      sent.push_back(sequence(tag, lengths[tag]));
      got.emplace_back(lengths[tag], -1);
    }
    for (int i = 0; i < 5; ++i) {
      const int tag = comm.rank() == 0 ? i : 4 - i;
      auto& send = sent[static_cast<std::size_t>(tag)];
      requests.push_back(comm.send_async(send.data(), send.size() * 4, 1 - comm.rank(), tag));
    }
    for (int i = 0; i < 5; ++i) {
      const int tag = comm.rank() == 0 ? i : 4 - i;
      auto& receive = got[static_cast<std::size_t>(tag)];
      requests.push_back(comm.recv_async(receive.data(), receive.size() * 4, 1 - comm.rank(), tag));
    }
    for (Request& request : requests) {
      request.wait();
    }
    return wrong_unless(got == sent, "a message went astray");
  });
}

TEST_P(Forms, MessagesOfOneTagKeepTheirOrder) {
  run(2, [](Communicator& comm) {
    std::string wrong;
    for (int i = 0; i < 300; ++i) {
      int value = i;
      if (comm.rank() == 0) {
        comm.send(&value, sizeof(value), 1, i % 3 == 0 ? 1 : 2);
      } else {
        comm.recv(&value, sizeof(value), 0, i % 3 == 0 ? 1 : 2);
        wrong += wrong_unless(value == i, "message " + std::to_string(i));
      }
    }
    return wrong;
  });
}

TEST_P(Forms, SendToItselfAndNothing) {
  run(2, [](Communicator& comm) {
    const std::vector<int> mine = sequence(comm.rank(), 1000);
    std::vector<int> got(1000);
    Request sent = comm.send_async(mine.data(), 4000, comm.rank(), 3);
    comm.recv(got.data(), 4000, comm.rank(), 3);
    sent.wait();
    Request nothing = comm.send_async(nullptr, 0, 1 - comm.rank());
    comm.recv(nullptr, 0, 1 - comm.rank());
    nothing.wait();
    return wrong_unless(got == mine, "a message to itself");
  });
}

TEST_P(Forms, GroupsOfExchangesAndSums) {
  run(3, [](Communicator& comm) {
    const int next = (comm.rank() + 1) % 3;
    const int previous = (comm.rank() + 2) % 3;
    const std::vector<int> mine = sequence(comm.rank(), std::size_t{1} << 18);  // 1 MiB
    std::vector<int> got(mine.size());
    std::vector<std::vector<float>> sums(20);
    std::vector<float> average(10, static_cast<float>(comm.rank()));
    std::vector<std::vector<std::int8_t>> bytes(3, std::vector<std::int8_t>(7, -100));
    comm.group([&] {
      static_cast<void>(comm.send_async(mine.data(), mine.size() * 4, next));
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].assign(i * 50, static_cast<float>(comm.rank() + 1));
        static_cast<void>(comm.all_reduce_async(std::span(sums[i]), sum));
      }
      static_cast<void>(comm.all_reduce_async(std::span(average), avg));
      for (auto& data : bytes) {
        static_cast<void>(comm.all_reduce_async(std::span(data), avg));
      }
      static_cast<void>(comm.recv_async(got.data(), got.size() * 4, previous));
    });
    std::string wrong = wrong_unless(got == sequence(previous, mine.size()), "exchange");
    for (const auto& data : sums) {
      wrong += wrong_unless(data == std::vector<float>(data.size(), 6.0F), "a fused sum");
    }
    for (const auto& data : bytes) {
      wrong += wrong_unless(data == std::vector<std::int8_t>(7, -100), "a fused average");
    }
    return wrong + wrong_unless(average == std::vector<float>(10, 1.0F), "average");
  });
}

TEST_P(Forms, APlanOutlivesTheListsItWasMadeOf) {
  run(2, [](Communicator& comm) {
    std::vector<int> in = sequence(comm.rank() * 10, 3);
    std::vector<int> out(6);
    std::optional<Plan> plan;
    {
      auto counts = std::make_unique<std::vector<std::size_t>>(2, 3);
      auto word = std::make_unique<std::string>("ring");
      plan.emplace(comm.plan({.collective = Collective::all_gather_v,
                              .in = in.data(),
                              .out = out.data(),
                              .dtype = Dtype::i32,
                              .counts = *counts,
                              .algorithm = *word}));
    }
    std::string wrong = wrong_unless(plan->algorithm() == "ring", "algorithm");
    for (int round = 0; round < 20; ++round) {
      in[0] = round;
      round % 2 == 0 ? plan->start() : plan->start_async().wait();
      wrong += wrong_unless(out[0] == round && out[3] == round && out[5] == 12, "a round");
    }
    return wrong;
  });
}

// More announcements than fit into a socket, while the peer reads none of them.
TEST_P(Forms, ManyRegionsComeAndGo) {
  run(2, [](Communicator& comm) {
    std::string wrong;
    if (comm.rank() == 0) {
      for (int i = 0; i < 1000; ++i) {
        const Region region = comm.allocate(5000);
        wrong += wrong_unless(region.bytes().size() == 5000, "size");
      }
    }
    comm.barrier();
    const Region region = comm.allocate(std::size_t{1} << 20);
    const std::span<int> data(reinterpret_cast<int*>(region.bytes().data()), std::size_t{1} << 18);
    std::fill(data.begin(), data.end(), comm.rank() + 1);
    comm.all_reduce(data, sum);
    return wrong + wrong_unless(data.front() == 3 && data.back() == 3, "sum after them");
  });
}

TEST_P(Forms, ContainersInRegisteredMemory) {
  run(2, [](Communicator& comm) {
    const allocator<int> memory(comm);
    std::vector<int, allocator<int>> data(memory);
    for (int i = 0; i < 100'000; ++i) {
      data.push_back(comm.rank() + i);  // moves from region to region
    }
    const std::vector<int, allocator<int>> copy = data;
    comm.all_reduce(std::span(data), sum);
    std::string wrong = wrong_unless(data[99'999] == 1 + 2 * 99'999, "sum");
    wrong += wrong_unless(copy[99'999] == comm.rank() + 99'999, "copy");
    wrong += wrong_unless(copy.get_allocator() == memory, "one memory");
    wrong += wrong_unless(!(allocator<int>(comm) == memory), "another memory");
    wrong += wrong_unless(std::vector<int, allocator<int>>(0, memory).empty(), "none");
    std::vector<int, allocator<int>> front(10, 1, allocator<int>(comm));
    {
      std::vector<int, allocator<int>> back(20, 2, allocator<int>(comm));
      std::swap(front, back);
      const int* taken = front.data();
      std::vector<int, allocator<int>> moved(allocator<int>{comm});
      moved = std::move(front);
      wrong += wrong_unless(moved.data() == taken, "a move copies");
      front = std::move(moved);
    }
    wrong += wrong_unless(front.size() == 20 && front[19] == 2, "after a swap");
    comm.barrier();
    return wrong;
  });
}

TEST(LocalRanks, AreNumberedOnEachHostInTheOrderOfTheGroup) {
  if (read_env("UNISONO_TEST_WORLD")) {
    GTEST_SKIP() << "the ranks are on other hosts than this test says";
  }
  const auto said = on_hosts({0, 1, 0, 1, 1}, [](Communicator& comm) {
    Communicator reversed = comm.split(comm.rank() == 3 ? -1 : 0, -comm.rank());
    std::string text;
    for (Communicator* group : {&comm, &reversed}) {
      text += group->size() == 0 ? " none"
                                 : " " + std::to_string(group->local_rank()) + "/" +
                                       std::to_string(group->local_size());
    }
    return text;
  });
  EXPECT_EQ(said, (std::vector<std::string>{" 0/2 1/2", " 0/3 1/2", " 1/2 0/2", " 1/3 none",
                                            " 2/3 0/2"}));
}

// Lengths that are sent in one message, in slots, as an offer, and longer ones.
TEST_P(Forms, ExchangeOfAnyLength) {
  run(3, [](Communicator& comm) {
    std::string wrong;
    const int next = (comm.rank() + 1) % 3;
    const int before = (comm.rank() + 2) % 3;
    for (const std::size_t count : {std::size_t{0}, std::size_t{10}, std::size_t{50'000},
                                    std::size_t{262'144}, std::size_t{2'300'001}}) {
      // Often enough that a writer checks the progress of its readers.
      for (int turn = 0; turn < (count == 262'144 ? 20 : 2); ++turn) {
        const std::vector<int> mine = sequence(comm.rank() + turn, count);
        std::vector<int> theirs(count);
        const std::size_t bytes = count * sizeof(int);
        comm.send_recv(mine.data(), bytes, next, theirs.data(), bytes, before, turn);
        wrong += wrong_unless(theirs == sequence(before + turn, count), "neighbours");
        comm.send_recv(mine.data(), bytes, comm.rank(), theirs.data(), bytes, comm.rank(), turn);
        wrong += wrong_unless(theirs == mine, "itself");
      }
    }
    return wrong;
  });
}

// Sends `count` bytes to `next`, receives them from `before` into a buffer with `spare` more bytes,
// through every form. Returns the names of the forms that give a wrong length or content.
std::string into_larger_buffer(Communicator& comm, std::size_t count, std::size_t spare, int next,
                               int before) {
  using Bytes = std::vector<unsigned char>;
  const auto content = [&](int rank) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
      bytes[i] = static_cast<unsigned char>(i * 31 + static_cast<std::size_t>(rank));
    }
    return bytes;
  };
  const Bytes mine = content(comm.rank());
  Bytes wanted = content(before);
  wanted.resize(count + spare, 0xEE);
  std::string wrong;
  const auto check = [&](std::size_t length, const Bytes& got, const char* form) {
    wrong += wrong_unless(
        length == count && got == wanted,
        form + (" of " + std::to_string(count)) + " into " + std::to_string(count + spare));
  };
  Bytes got(count + spare, 0xEE);
  check(comm.send_recv(mine.data(), count, next, got.data(), got.size(), before), got, "send_recv");
  got.assign(count + spare, 0xEE);
  check(comm.send_recv(mine, next, got, before), got, "typed send_recv");
  for (const int from : {before, kAnySource}) {
    got.assign(count + spare, 0xEE);
    Request received = comm.recv_async(got.data(), got.size(), from, 1);
    comm.send(mine.data(), count, next, 1);
    received.wait();
    check(received.received(), got, from == before ? "recv_async" : "recv_async from any");
    wrong += wrong_unless(received.source() == before, "source");
  }
  // The second message is received first, so the first one is stored.
  got.assign(count + spare, 0xEE);
  Request first = comm.send_async(mine, next, 3);
  Request second = comm.send_async(mine.data(), 1, next, 4);
  Bytes one(2);
  wrong += wrong_unless(comm.recv(one, before, 4) == 1, "one byte");
  check(comm.recv(got.data(), got.size(), before, 3), got, "recv of a stored message");
  first.wait();
  second.wait();
  return wrong;
}

// Lengths that are sent in one message, in slots and as an offer, to another rank and to itself.
TEST_P(Forms, AReceiveIntoALargerBufferLearnsTheLength) {
  run(3, [](Communicator& comm) {
    std::string wrong;
    const int next = (comm.rank() + 1) % 3;
    const int before = (comm.rank() + 2) % 3;
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{40}, std::size_t{50'000}, std::size_t{1'000'001}}) {
      for (const std::size_t spare : {std::size_t{0}, std::size_t{1}, std::size_t{300'000}}) {
        wrong += into_larger_buffer(comm, count, spare, next, before);
      }
    }
    wrong += into_larger_buffer(comm, 1000, 24, comm.rank(), comm.rank());
    int room = 7;
    const std::vector<int> nothing;
    wrong +=
        wrong_unless(comm.send_recv(nothing, next, std::span(&room, 1), before) == 0 && room == 7,
                     "no elements");
    return wrong;
  });
}

TEST_P(Forms, TypedMessages) {
  run(2, [](Communicator& comm) {
    struct Pair {
      int a = 0;
      float b = 0;
    };
    std::string wrong;
    const int peer = 1 - comm.rank();
    const std::array<Pair, 2> pairs = {{{.a = comm.rank(), .b = 1}, {.a = 5, .b = 2}}};
    std::vector<Pair> got(4);
    Request sent = comm.send_async(pairs, peer);
    wrong += wrong_unless(comm.recv(got, peer) == 2 && got[0].a == peer && got[1].b == 2, "recv");
    sent.wait();
    std::vector<long long> long_ones = {1LL << 40, comm.rank()};
    comm.all_reduce(long_ones, sum);
    wrong += wrong_unless(long_ones[0] == 2LL << 40 && long_ones[1] == 1, "long long");
    // Three bytes are not a whole number of ints: this rank alone gets an error.
    Request odd = comm.send_async("abc", 3, peer, 1);
    try {
      std::vector<int> ints(2);
      comm.recv(ints, peer, 1);
      wrong += "three bytes are taken for ints";
    } catch (const Error& error) {
      wrong += wrong_unless(error.code() == ErrorCode::usage, error.what());
    }
    odd.wait();
    comm.barrier();
    return wrong;
  });
}

// A long virtual range over a few physical pages.
class Sparse {
 public:
  explicit Sparse(std::size_t bytes) : bytes_((bytes + kPiece - 1) / kPiece * kPiece) {
    const UniqueFd piece(::memfd_create("sparse", MFD_CLOEXEC));
    if (::ftruncate(piece.get(), kPiece) != 0) {
      return;
    }
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (std::size_t at = 0; at + kPiece < bytes_; at += kPiece) {
      ::mmap(base_ + at, kPiece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, piece.get(), 0);
    }
    ::mmap(base_ + bytes_ - kPiece, kPiece, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);  // the end has its own pages
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() { ::munmap(base_, bytes_); }
  std::byte* data() const { return base_; }

 private:
  static constexpr std::size_t kPiece = std::size_t{2} << 20;
  std::size_t bytes_;
  std::byte* base_ = nullptr;
};

TEST(Long, MoreElementsThanAnInt) {
  constexpr std::size_t kCount = (std::size_t{1} << 31) + 7;
  for (const std::string& wrong : on_ranks(Ranks::processes, 2, [&](Communicator& comm) {
         const Sparse memory(kCount);
         const std::span<std::byte> data(memory.data(), kCount);
         for (std::size_t i = 0; i < 7 && comm.rank() == 0; ++i) {
           data[kCount - 7 + i] = static_cast<std::byte>(i + 1);
         }
         comm.broadcast(data, 0);
         std::string text;
         for (std::size_t i = 0; i < 7; ++i) {
           text += wrong_unless(data[kCount - 7 + i] == static_cast<std::byte>(i + 1), "the end");
         }
         return text;
       })) {
    EXPECT_EQ(wrong, "");
  }
}

TEST(Timeout, NamesTheRankThatHasNotCome) {
  for (const std::string& said : on_ranks(Ranks::threads, 4, [](Communicator& comm) {
         try {
           if (comm.rank() == 2) {
             int never = 0;
             comm.recv(&never, sizeof(never), 2, 0, 30'000);
           }
           std::vector<float> data(8);
           comm.run({.collective = Collective::all_reduce,
                     .in = data.data(),
                     .out = data.data(),
                     .count = 8,
                     .dtype = Dtype::f32,
                     .algorithm = "ring",
                     .timeout_ms = 1500});
         } catch (const Error& error) {
           return wrong_unless(error.code() == ErrorCode::timeout && error.context().peer == 2,
                               error.what());
         }
         return std::string("no error");
       })) {
    EXPECT_EQ(said, "");
  }
}

// Peers that get the error may change memory that this rank still reads.
std::string abort_in_the_last_step(Communicator& comm, bool async) {
  const auto abort_and_add = [](void* inout, const void* in, std::size_t count, void* context) {
    static_cast<Communicator*>(context)->abort("while it is reduced");
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
    }
  };
  std::vector<int> data = {1};
  std::vector<int> total = {0};
  try {
    const Reduction last = Reduction::custom({.combine = abort_and_add, .context = &comm});
    if (async) {
      comm.reduce_async(std::span<const int>(data), std::span(total), last, 1).wait();
    } else {
      comm.reduce(std::span<const int>(data), std::span(total), last, 1);
    }
    return wrong_unless(comm.rank() == 0, "a result after an abort");
  } catch (const Error& error) {
    return wrong_unless(error.code() == ErrorCode::aborted, error.what());
  }
}
TEST_P(Forms, AbortInTheLastStepLeavesNoResult) {
  run(2, [](Communicator& comm) { return abort_in_the_last_step(comm, false); });
  run(2, [](Communicator& comm) { return abort_in_the_last_step(comm, true); });
}

double as_number(double value) {
  return value;
}
double as_number(float value) {
  return value;
}
template <typename T>
double as_number(T narrow) {
  return to_float(narrow);
}

// With every algorithm and each reduction: the sum of such large numbers exceeds their type.
template <typename T>
std::string wrong_averages(Communicator& comm, T value) {
  std::string wrong;
  const auto n = static_cast<std::size_t>(comm.size());
  for (const Algorithm* algorithm : catalog()) {
    const Collective collective = algorithm->collective;
    if (!reduces(collective) || is_scan(collective) ||
        !can_serve(*algorithm, {.ranks = comm.size()})) {
      continue;
    }
    for (const std::size_t count : {std::size_t{1}, std::size_t{300}, std::size_t{20'000}}) {
      const std::vector<T> in(collective == Collective::reduce_scatter ? n * count : count, value);
      std::vector<T> out(count);
      Call call{.collective = collective,
                .in = in.data(),
                .out = out.data(),
                .count = count,
                .dtype = detail::dtype_of<T>(),
                .reduction = avg,
                .algorithm = algorithm->name};
      comm.plan(call).start();
      const bool has_result = collective != Collective::reduce || comm.rank() == 0;
      wrong +=
          wrong_unless(!has_result || (as_number(out.front()) == as_number(value) &&
                                       as_number(out.back()) == as_number(value)),
                       std::string(to_string(collective)) + " " + std::string(algorithm->name) +
                           ": " + std::to_string(as_number(out.back())));
    }
  }
  return wrong;
}

TEST_P(Forms, AveragesOfEqualFloats) {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    run(ranks, [](Communicator& comm) {
      return wrong_averages(comm, 0x1.8p127F) + wrong_averages(comm, 0x1.8p1023) +
             wrong_averages(comm, 0x1p-120F) + wrong_averages(comm, to_f16(60'000)) +
             wrong_averages(comm, to_bf16(3e38F)) + wrong_averages(comm, to_f8e4m3(448)) +
             wrong_averages(comm, to_f8e5m2(40'960)) + wrong_averages(comm, to_f16(0x1p-24F));
    });
  }
}

// x -> factor * x + addend, with the factor in the high half. `in` first, then `inout`:
// compositions do not commute.
constexpr std::uint64_t affine(std::uint64_t factor, std::uint64_t addend) {
  return factor << 32 | (addend & 0xffffffffU);
}

constexpr std::uint64_t composed(std::uint64_t first, std::uint64_t second) {
  const std::uint64_t factor = second >> 32;
  return affine((first >> 32) * factor, (first & 0xffffffffU) * factor + (second & 0xffffffffU));
}

void compose(void* inout, const void* in, std::size_t count, void* /*context*/) {
  auto* const second = static_cast<std::uint64_t*>(inout);
  const auto* const first = static_cast<const std::uint64_t*>(in);
  std::transform(first, first + count, second, second, composed);
}

std::string wrong_compositions(Communicator& comm, const Algorithm& algorithm, std::size_t count) {
  const auto mine = [](int rank) { return affine(5, static_cast<std::uint64_t>(rank) + 1); };
  constexpr std::uint64_t kUnchanged = 77;
  const std::vector<std::uint64_t> in(count, mine(comm.rank()));
  std::vector<std::uint64_t> out(count, kUnchanged);
  comm.run({.collective = algorithm.collective,
            .in = in.data(),
            .out = out.data(),
            .count = count,
            .dtype = Dtype::u64,
            .reduction = Reduction::custom({.combine = compose}),
            .algorithm = algorithm.name});
  // The function has no known identity, so exclusive_scan leaves rank 0's output unchanged.
  const int terms = comm.rank() + (algorithm.collective == Collective::scan ? 1 : 0);
  std::uint64_t expected = terms == 0 ? kUnchanged : mine(0);
  for (int rank = 1; rank < terms; ++rank) {
    expected = composed(expected, mine(rank));
  }
  return wrong_unless(out == std::vector(count, expected),
                      std::string(to_string(algorithm.collective)) + " " +
                          std::string(algorithm.name) + " of " + std::to_string(count));
}

TEST_P(Forms, ScansOfAFunctionThatDoesNotCommute) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    run(ranks, [](Communicator& comm) {
      std::string wrong;
      for (const Algorithm* algorithm : catalog()) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{40'000}}) {
          wrong +=
              is_scan(algorithm->collective) ? wrong_compositions(comm, *algorithm, count) : "";
        }
      }
      return wrong;
    });
  }
}

TEST_P(Forms, ScansHaveTypedForms) {
  run(3, [](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    const std::vector<std::int64_t> tokens = {10, 20, 30};  // by rank
    std::array<std::int64_t, 1> first = {tokens[rank]};
    std::array<std::int64_t, 1> end = {-1};
    comm.scan(std::span(tokens).subspan(rank, 1), end, sum);
    comm.exclusive_scan(first, sum);
    std::string wrong =
        wrong_unless(first[0] == std::array<std::int64_t, 3>{0, 10, 30}[rank], "exclusive_scan") +
        wrong_unless(end[0] == std::array<std::int64_t, 3>{10, 30, 60}[rank], "scan");
    comm.scan_async(first, max).wait();
    comm.exclusive_scan_async(first, end, max).wait();
    const std::int64_t least = std::numeric_limits<std::int64_t>::min();
    wrong += wrong_unless(end[0] == std::array<std::int64_t, 3>{least, 0, 10}[rank],
                          "exclusive_scan of max");
    try {
      comm.scan(first, avg);
      wrong += "avg was taken; ";
    } catch (const Error& error) {
      wrong += wrong_unless(error.code() == ErrorCode::usage, error.what());
    }
    return wrong;
  });
}

TEST(SendTimeout, SaysThatTheBytesWaitForTheirReceiver) {
  if (read_env("UNISONO_TEST_WORLD")) {
    GTEST_SKIP() << "over a network, bytes wait in this process or are the kernel's";
  }
  const auto said = on_ranks(Ranks::threads, 2, [](Communicator& comm) -> std::string {
    const std::vector<std::byte> data(4'000'000);
    try {
      if (comm.rank() == 0) {
        comm.send(data.data(), data.size(), 1, 3, 50);  // never received
      }
      comm.barrier();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  });
  for (const std::string& text : said) {
    EXPECT_TRUE(text.starts_with("timeout: send to rank 1 on rank 0, tag 3, ")) << text;
    EXPECT_NE(text.find(": all bytes are sent, but rank 1 has not received them after "),
              std::string::npos)
        << text;
  }
}

// Each row of "what is compared" (docs/reliability.md) with the answer no.
TEST_P(Forms, RanksMayDifferInWhatIsTheirOwnMatter) {
  run(3, [](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    std::string wrong;
    // In place or not, registered memory or other, a time limit, a label.
    const Region region = comm.allocate(2 * sizeof(float));
    std::vector<float> plain(2);
    const std::span<float> in(
        me == 0 ? reinterpret_cast<float*>(region.bytes().data()) : plain.data(), 2);
    in[0] = 1;
    in[1] = 2;
    std::vector<float> out(2);
    comm.label(me == 0 ? "one" : "other");
    comm.run({.collective = Collective::all_reduce,
              .in = in.data(),
              .out = me == 0 ? in.data() : out.data(),
              .count = 2,
              .dtype = Dtype::f32,
              .timeout_ms = me == 0 ? 50'000 : -1});
    wrong += wrong_unless((me == 0 ? in[1] : out[1]) == 6, "sum");
    // The positions of the parts of a v-form.
    const std::vector<std::size_t> counts = {1, 1, 1};
    const std::vector<std::size_t> displs =
        me == 1 ? std::vector<std::size_t>{4, 2, 0} : std::vector<std::size_t>{0, 1, 2};
    std::vector<int> all(5);
    const int mine = comm.rank() + 1;
    comm.run({.collective = Collective::all_gather_v,
              .in = &mine,
              .out = all.data(),
              .dtype = Dtype::i32,
              .counts = counts,
              .displs = displs});
    wrong += wrong_unless(all[displs[2]] == 3 && all[displs[0]] == 1, "parts");
    // The function of an operation, which has another address in each process.
    int context = comm.rank();
    const auto add = [](void* inout, const void* one, std::size_t count, void*) {
      for (std::size_t i = 0; i < count; ++i) {
        static_cast<int*>(inout)[i] += static_cast<const int*>(one)[i];
      }
    };
    const auto add_too = [](void* inout, const void* one, std::size_t count, void*) {
      for (std::size_t i = count; i-- > 0;) {
        static_cast<int*>(inout)[i] += static_cast<const int*>(one)[i];
      }
    };
    std::vector<int> numbers = {1, 2};
    const UserOp op =
        me == 0 ? UserOp{.combine = add, .context = &context} : UserOp{.combine = add_too};
    comm.all_reduce(std::span(numbers), Reduction::custom(op));
    return wrong + wrong_unless(numbers == std::vector<int>({3, 6}), "an operation of its own");
  });
}

// The destructor's error cannot be caught.
TEST(DroppedRequest, ReportsItsErrorOnce) {
  ::testing::internal::CaptureStderr();
  const auto said = on_ranks(Ranks::threads, 2, [](Communicator& comm) -> std::string {
    std::byte data[2] = {};
    if (comm.rank() == 0) {
      {
        const Request first = comm.recv_async(&data[0], 1, 1, 3, 50);  // never sent
        const Request second = comm.recv_async(&data[1], 1, 1, 4, 50);
      }
      return "";
    }
    try {
      comm.barrier();
    } catch (const Error& error) {
      return wrong_unless(error.code() == ErrorCode::timeout, error.what());
    }
    return "no error";
  });
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_NE(
      text.find("unisono: rank 0 destroyed a request without wait(), and the request failed: recv"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace unisono::testing
