// Progress while no thread waits: one progress thread for all groups, notification of an end,
// deadlines. Receives from any rank, and groups that only their members create.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "ranks.h"

namespace unisono::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::string wrong_unless(bool right, const std::string& what) {
  return right ? "" : what + "; ";
}

void expect_silence(const std::vector<std::string>& said) {
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    EXPECT_EQ(said[rank], "") << "rank " << rank;
  }
}

bool comes_true(const std::function<bool()>& condition) {
  const auto until = Clock::now() + std::chrono::seconds(20);
  while (!condition() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(Progress, TellsOfTheEndThoughNobodyWaits) {
  expect_silence(on_ranks(Ranks::processes, 3, [](Communicator& comm) {
    std::vector<float> data(100'000, 1.0F);
    std::atomic<int> told = 0;
    Request request = comm.all_reduce_async(std::span(data), sum);
    request.on_done([&](const Error* error) { told = error == nullptr ? 1 : 2; });
    std::string wrong = wrong_unless(comes_true([&] { return told != 0; }), "never told");
    wrong += wrong_unless(told == 1, "told of an error");
    wrong += wrong_unless(data[99'999] == 3.0F, "sum");
    request.wait();
    int again = 0;
    Request done = comm.barrier_async();
    comes_true([&] { return done.test(); });
    done.on_done([&](const Error*) { ++again; });
    return wrong + wrong_unless(again == 1, "told at once of what is done");
  }));
}

TEST(Progress, TellsInGroupsAndFromWaitingThreads) {
  expect_silence(on_ranks(Ranks::threads, 2, [](Communicator& comm) {
    std::vector<int> a = {1};
    std::vector<int> b = {2};
    std::atomic<int> told = 0;
    std::vector<Request> requests;
    comm.group([&] {
      for (auto* data : {&a, &b}) {
        requests.push_back(comm.all_reduce_async(std::span(*data), sum));
        requests.back().on_done([&](const Error* error) { told += error == nullptr ? 1 : 100; });
      }
    });
    std::string wrong = wrong_unless(told == 2 && a[0] == 2 && b[0] == 4, "group");
    Request first = comm.all_reduce_async(std::span(a), sum);
    first.on_done([&](const Error*) { ++told; });
    Request second = comm.all_reduce_async(std::span(b), sum);
    second.wait();
    return wrong + wrong_unless(told == 3, "the first was done before the second");
  }));
}

// A callback at the end of an operation may start the next one on the same group.
TEST(Progress, AnEndMayStartAnOperation) {
  expect_silence(on_ranks(Ranks::processes, 2, [](Communicator& comm) {
    std::vector<int> data = {1};
    Request second;
    std::atomic<bool> started = false;
    Request first = comm.all_reduce_async(std::span(data), sum);
    first.on_done([&](const Error*) {
      second = comm.all_reduce_async(std::span(data), sum);
      started = true;
    });
    std::string wrong = wrong_unless(comes_true([&] { return started.load(); }), "never started");
    first.wait();
    second.wait();
    return wrong + wrong_unless(data[0] == 4, "sum of sums");
  }));
}

// Callbacks must not throw; here an exception simulates a failed allocation while a thread waits.
TEST(Progress, GoesOnAfterAWaitThatThrew) {
  expect_silence(on_ranks(Ranks::threads, 2, [](Communicator& comm) {
    std::vector<float> data(100'000, 1.0F);
    Communicator group = comm.split(0, comm.rank());
    std::atomic<bool> stopped = false;
    std::atomic<bool> goes_on = false;
    Request first = comm.all_reduce_async(std::span(data), sum);
    first.on_done([&](const Error*) {
      stopped = true;
      comes_true([&] { return goes_on.load(); });
    });
    std::string wrong = wrong_unless(comes_true([&] { return stopped.load(); }), "never told");
    // The progress thread is blocked in its callback now, so the waiting thread throws.
    Request second = group.all_reduce_async(std::span(data), sum);
    second.on_done([](const Error*) { throw std::bad_alloc(); });
    bool threw = false;
    try {
      second.wait();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    wrong += wrong_unless(threw, "the wait threw nothing");
    goes_on = true;
    std::atomic<bool> told = false;
    Request third = group.all_reduce_async(std::span(data), sum);
    third.on_done([&](const Error*) { told = true; });
    wrong += wrong_unless(comes_true([&] { return told.load(); }), "nobody drives the group");
    first.wait();
    third.wait();
    return wrong;
  }));
}

TEST(Progress, DeadlinesHoldThoughNobodyWaits) {
  const comm::testing::SharedEvent first;
  expect_silence(on_ranks(Ranks::processes, 2, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      return wrong_unless(first.wait(), "rank 0 still waits");
    }
    std::vector<int> data = {1};
    std::atomic<int> code = -1;
    Request request = comm.run_async({.collective = Collective::all_reduce,
                                      .in = data.data(),
                                      .out = data.data(),
                                      .count = 1,
                                      .dtype = Dtype::i32,
                                      .timeout_ms = 200});
    request.on_done([&](const Error* error) { code = error == nullptr ? 0 : int(error->code()); });
    comes_true([&] { return code != -1; });
    first.happen();
    return wrong_unless(code == int(ErrorCode::timeout), "code " + std::to_string(code));
  }));
  const comm::testing::SharedEvent second;
  expect_silence(on_ranks(Ranks::processes, 2, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      return wrong_unless(second.wait(), "rank 0 still waits");
    }
    int never = 0;
    std::atomic<int> code = -1;
    Request request = comm.recv_async(&never, sizeof(never), kAnySource, 0, 100);
    request.on_done([&](const Error* error) { code = error == nullptr ? 0 : int(error->code()); });
    comes_true([&] { return code != -1; });
    second.happen();
    return wrong_unless(code == int(ErrorCode::timeout), "code " + std::to_string(code));
  }));
}

TEST(AnySource, TakesWhoSendsFirstAndSaysWho) {
  for (const Ranks kind : {Ranks::processes, Ranks::threads}) {
    expect_silence(on_ranks(kind, 4, [](Communicator& comm) {
      const std::size_t counts[] = {3, 50'000};  // in a cell, and through slots
      std::string wrong;
      for (const std::size_t count : counts) {
        std::vector<int> data(count, comm.rank());
        const int tag = count == 3 ? 7 : 8;
        if (comm.rank() != 0) {
          comm.send(data.data(), count * sizeof(int), 0, tag);
          continue;
        }
        std::vector<bool> seen(4);
        for (int i = 1; i < 4; ++i) {
          Request request = comm.recv_async(data.data(), count * sizeof(int), kAnySource, tag);
          request.wait();
          const int from = request.source();
          wrong += wrong_unless(from >= 1 && from < 4 && !seen[static_cast<std::size_t>(from)] &&
                                    data[0] == from && data[count - 1] == from,
                                "source " + std::to_string(from));
          seen[static_cast<std::size_t>(from)] = true;
        }
      }
      return wrong;
    }));
  }
}

TEST(AnySource, LeavesOtherTagsAndNamedSourcesAlone) {
  expect_silence(on_ranks(Ranks::processes, 2, [](Communicator& comm) {
    const int values[] = {10, 20, 30};
    if (comm.rank() == 1) {
      comm.send(&values[0], sizeof(int), 0, 1);
      comm.send(&values[1], sizeof(int), 0, 2);
      comm.send(&values[2], sizeof(int), 0, 2);
      return std::string();
    }
    int any = 0;
    int named = 0;
    int other = 0;
    Request from_one = comm.recv_async(&named, sizeof(int), 1, 2);
    Request from_any = comm.recv_async(&any, sizeof(int), kAnySource, 2);
    from_any.wait();
    from_one.wait();
    comm.recv(&other, sizeof(int), kAnySource, 1);
    return wrong_unless(named == 20 && any == 30 && other == 10,
                        std::to_string(named) + " " + std::to_string(any));
  }));
}

TEST(Subgroup, OnlyItsMembersMakeIt) {
  expect_silence(on_ranks(Ranks::processes, 4, [](Communicator& comm) {
    std::string wrong;
    if (comm.rank() == 1 || comm.rank() == 3) {
      const int members[] = {3, 1};
      Communicator pair = comm.subgroup(members, 5);
      wrong += wrong_unless(pair.size() == 2 && pair.rank() == (comm.rank() == 3 ? 0 : 1), "rank");
      std::vector<int> data = {comm.rank()};
      pair.all_reduce(std::span(data), sum);
      wrong += wrong_unless(data[0] == 4, "sum");
      const int self[] = {pair.rank()};
      Communicator single = pair.subgroup(self, 1);
      single.all_reduce(std::span(data), sum);
      wrong += wrong_unless(single.size() == 1 && data[0] == 4, "single");
    } else {
      const int others[] = {0, 2};  // a group of other ranks: the same number is another group
      Communicator pair = comm.subgroup(others, 5);
      std::vector<int> data = {comm.rank()};
      pair.all_reduce(std::span(data), sum);
      wrong += wrong_unless(data[0] == 2, "sum of the others");
    }
    comm.barrier();
    return wrong;
  }));
}

// Ranks that list other ranks, or another order, each with a head start; rank 2 may only wait.
struct Disagreement {
  std::vector<int> lists[3];
  const char* told[2];
};

TEST(Subgroup, MembersThatDifferAreToldToAllAtOnce) {
  const Disagreement all[] = {
      {.lists = {{0, 1}, {1, 0}, {}}, .told = {"rank 0 names 0, 1;", "rank 1 names 1, 0 "}},
      {.lists = {{0, 1, 2}, {1, 2}, {1, 2}}, .told = {"rank 0 names 0, 1, 2;", " names 1, 2 "}},
      {.lists = {{0, 1}, {0, 1, 2}, {0, 1, 2}}, .told = {" names 0, 1", " names 0, 1, 2"}}};
  for (const Disagreement& one : all) {
    for (int first = 0; first < 3; ++first) {
      expect_silence(on_ranks(Ranks::processes, 3, [&](Communicator& comm) -> std::string {
        const std::vector<int>& members = one.lists[comm.rank()];
        if (comm.rank() != first) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        const auto begin = Clock::now();
        try {
          if (!members.empty()) {
            comm.subgroup(members, 5).barrier();
          }
          comm.barrier();
          return "no error";
        } catch (const Error& error) {
          const std::string text = error.what();
          return wrong_unless(error.code() == ErrorCode::mismatch &&
                                  text.find(one.told[0]) != std::string::npos &&
                                  text.find(one.told[1]) != std::string::npos,
                              text) +
                 wrong_unless(Clock::now() - begin < std::chrono::seconds(30), "late");
        }
      }));
    }
  }
}

TEST(Subgroup, RefusesMistakes) {
  expect_silence(on_ranks(Ranks::processes, 2, [](Communicator& comm) {
    std::string wrong;
    const std::vector<int> lists[] = {{0, 2}, {0, 0}, {1 - comm.rank()}, {}};
    for (const auto& members : lists) {
      try {
        static_cast<void>(comm.subgroup(members, 1));
        wrong += "accepted " + std::to_string(members.size()) + "; ";
      } catch (const Error& error) {
        wrong += wrong_unless(error.code() == ErrorCode::usage, error.what());
      }
    }
    return wrong;
  }));
}

// Even if the other ranks list the same members, so that no list differs.
TEST(Subgroup, AnIdThatALivingGroupHasIsRefused) {
  expect_silence(on_ranks(Ranks::processes, 2, [](Communicator& comm) {
    const int members[] = {0, 1};
    std::string wrong;
    std::optional<Communicator> first = comm.subgroup(members, 7);
    try {
      Communicator second = comm.subgroup(members, 7);
      second.barrier();
      wrong += "no error; ";
    } catch (const Error& error) {
      const std::string text = error.what();
      wrong += wrong_unless(
          error.code() == ErrorCode::usage && text.find("subgroup 7") != std::string::npos, text);
    }
    first->barrier();                                     // continues
    Communicator of_first = first->subgroup(members, 7);  // a group of another communicator
    of_first.barrier();
    comm.barrier();
    first.reset();
    comm.barrier();
    Communicator again = comm.subgroup(members, 7);
    again.barrier();
    return wrong;
  }));
}

TEST(Subgroup, ManyTakeNeitherThreadsNorDescriptors) {
  expect_silence(on_ranks(Ranks::processes, 2, [](Communicator& comm) {
    const int members[] = {0, 1};
    std::vector<Communicator> groups;
    std::vector<Request> requests;
    std::vector<int> data(200);
    std::iota(data.begin(), data.end(), 0);
    // An operation that cannot end at once starts the world's progress thread.
    const int sent = 7;
    int received = 0;
    Request late = comm.recv_async(&received, sizeof(received), 1 - comm.rank(), 9);
    comm.barrier();
    comm.send(&sent, sizeof(sent), 1 - comm.rank(), 9);
    late.wait();
    const auto descriptors = entries("/proc/self/fd");
    const auto threads = entries("/proc/self/task");
    for (std::size_t i = 0; i < 200; ++i) {
      groups.push_back(comm.subgroup(members, i));
    }
    comm.barrier();
    // Each rank uses another order, with all operations pending at once.
    for (std::size_t i = 0; i < 200; ++i) {
      const std::size_t which = comm.rank() == 0 ? i : 199 - i;
      requests.push_back(groups[which].all_reduce_async(std::span(data).subspan(which, 1), sum));
    }
    std::string wrong = wrong_unless(entries("/proc/self/task") <= threads, "threads");
    wrong += wrong_unless(entries("/proc/self/fd") == descriptors, "descriptors");
    for (Request& request : requests) {
      request.wait();
    }
    for (std::size_t i = 0; i < 200; ++i) {
      wrong += wrong_unless(data[i] == static_cast<int>(2 * i), std::to_string(i));
    }
    return wrong;
  }));
}

}  // namespace
}  // namespace unisono::testing
