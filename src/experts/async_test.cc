// Tests asynchronous dispatch and combine: results, mistakes and killed ranks. testing_checks.h
// tests random shapes asynchronously as well.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "comm/testing_ranks.h"
#include "experts/async.h"
#include "experts/state.h"
#include "unisono/parallel/experts.hpp"

namespace unisono {
namespace {

// A call with two tokens per rank; every expert returns its rows unchanged.
struct Call {
  Call(ExpertExchange& exchange, int rank, float first)
      : routing(route(exchange, rank)), tokens({first, first + 1}), rows(routing.rows()), out(2) {}
  static Routing route(ExpertExchange& exchange, int rank) {
    const std::vector<std::int32_t> chosen = {0, 3, 1, (rank + 2) % 4};
    return exchange.route(std::span(chosen));
  }
  Payload payload() {
    return {.in = std::as_bytes(std::span(tokens)),
            .out = std::as_writable_bytes(std::span(rows)),
            .row_bytes = sizeof(float)};
  }
  CombineRows back() {
    return {.rows = std::as_bytes(std::span(rows)),
            .out = std::as_writable_bytes(std::span(out)),
            .dtype = Dtype::f32,
            .hidden = 1};
  }
  void expect_sums() const { EXPECT_EQ(out, (std::vector<float>{2 * tokens[0], 2 * tokens[1]})); }
  Routing routing;
  std::vector<float> tokens;
  std::vector<float> rows;
  std::vector<float> out;
};

TEST(ExpertAsync, CallsAreMadeInTheirOrderBesideOtherCalls) {
  comm::testing::run_ranks(3, [](Communicator& comm) {
    ExpertExchange exchange(comm, {.experts = 4, .k = 2});
    Call first(exchange, comm.rank(), 1.0F);
    Call second(exchange, comm.rank(), 5.0F);
    Call third(exchange, comm.rank(), 9.0F);
    Request dispatched = exchange.dispatch_async(first.routing, {first.payload()});
    // The rows of the first dispatch are complete when this call reads them.
    Request combined = exchange.combine_async(first.routing, first.back());
    Request last = exchange.dispatch_async(third.routing, {third.payload()});
    exchange.dispatch(second.routing, {second.payload()});
    exchange.combine(second.routing, second.back());
    combined.wait();
    dispatched.wait();
    last.wait();
    exchange.combine(third.routing, third.back());
    first.expect_sums();
    second.expect_sums();
    third.expect_sums();
  });
}

TEST(ExpertAsync, EndsWithoutACallerThatWaits) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    ExpertExchange exchange(comm, {.experts = 4, .k = 2});
    Call call(exchange, comm.rank(), 1.0F);
    std::promise<bool> messages;
    Request request = exchange.dispatch_async(call.routing, {call.payload()});
    request.on_done([&](const Error* error) { messages.set_value(error == nullptr); });
    EXPECT_TRUE(messages.get_future().get());
    EXPECT_TRUE(request.test());
    request.wait();
    exchange.combine(call.routing, call.back());
    call.expect_sums();
  });
}

TEST(ExpertAsync, TheDestructorMakesWhatWasStarted) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    Request request;
    ExpertExchange kept(comm, {.experts = 4, .k = 2});
    {
      ExpertExchange exchange(comm, {.experts = 4, .k = 2});
      Call call(exchange, comm.rank(), 1.0F);
      request = exchange.dispatch_async(call.routing, {call.payload()});
      {
        const ExpertExchange ended = std::move(exchange);
      }
      Call again(kept, comm.rank(), 1.0F);
      kept.dispatch(again.routing, {again.payload()});
      EXPECT_EQ(call.rows, again.rows);
    }
    EXPECT_TRUE(request.test());
    request.wait();
  });
}

template <typename Wait>
std::string text_of(const Wait& wait) {
  try {
    wait();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ExpertAsync, MistakesAreToldByWait) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    ExpertExchange exchange(comm, {.experts = 4, .k = 2});
    Call call(exchange, comm.rank(), 1.0F);
    Payload wrong = call.payload();
    if (comm.rank() == 1) {
      wrong.in = wrong.in.first(4);
    }
    Request request = exchange.dispatch_async(call.routing, {wrong});
    Request next = exchange.dispatch_async(call.routing, {call.payload()});
    EXPECT_NE(text_of([&] {
                request.wait();
              }).find("experts: dispatch() of rank 1: `in` has 4 bytes, not the 8"),
              std::string::npos);
    EXPECT_NE(text_of([&] { request.wait(); }).find("waited for already"), std::string::npos);
    EXPECT_NE(text_of([&] { (void)next.source(); }).find("only a receive"), std::string::npos);
    next.wait();
    exchange.combine(call.routing, call.back());
    call.expect_sums();
  });
}

TEST(ExpertAsync, AnotherCallInsteadOfTheFirstIsToldToAll) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    ExpertExchange exchange(comm, {.experts = 4, .k = 2});
    Call call(exchange, comm.rank(), 1.0F);
    const std::string text = text_of([&] {
      if (comm.rank() == 0) {
        exchange.dispatch(call.routing, {call.payload()});
      } else {
        exchange.dispatch_async(call.routing, {call.payload()}).wait();
      }
    });
    EXPECT_NE(text.find("rank 0 calls dispatch(), and rank 1 calls dispatch_async()"),
              std::string::npos)
        << text;
    exchange.dispatch_async(call.routing, {call.payload()}).wait();
    exchange.combine(call.routing, call.back());
    call.expect_sums();
  });
}

TEST(ExpertAsync, ARankWithoutAThreadIsToldToAll) {
  const std::string job = comm::testing::unique_name("experts-thread");
  const auto said = comm::testing::as_processes(2, [&](int rank) -> std::string {
    Communicator comm = Communicator::connect(comm::testing::options_for(rank, 2, job));
    ExpertExchange exchange(comm, {.experts = 4, .k = 2});
    Call call(exchange, rank, 1.0F);
    pthread_attr_t usual;
    ::pthread_getattr_default_np(&usual);
    if (rank == 1) {  // a stack larger than any address space, so that no thread starts
      pthread_attr_t large = usual;
      ::pthread_attr_setstacksize(&large, std::size_t{1} << 50);
      ::pthread_setattr_default_np(&large);
    }
    const std::string text =
        text_of([&] { exchange.dispatch_async(call.routing, {call.payload()}).wait(); });
    ::pthread_setattr_default_np(&usual);
    exchange.dispatch_async(call.routing, {call.payload()}).wait();
    exchange.combine(call.routing, call.back());
    call.expect_sums();
    return text;
  });
  for (const std::string& text : said) {
    EXPECT_NE(text.find("dispatch_async() or combine_async() of rank 1: cannot start the thread"),
              std::string::npos)
        << text;
  }
}

// Checks the pending calls' errors in a forked child of rank 0. Returns its exit code.
int in_child(std::optional<ExpertExchange>& exchange, Call& call, Request& first, Request& second) {
  const auto refused = [](const auto& use) {
    return text_of(use).find("is a fork of") != std::string::npos;
  };
  const int status =
      (refused([&] { (void)first.test(); }) ? 0 : 1) + (refused([&] { first.wait(); }) ? 0 : 2) +
      (refused([&] { first.on_done([](const Error*) {}); }) ? 0 : 4) +
      (refused([&] { exchange->dispatch_async(call.routing, {call.payload()}).wait(); }) ? 0 : 8);
  {
    const Request unawaited = std::move(second);
  }
  exchange.reset();
  return status;
}

TEST(ExpertAsync, TheChildOfAForkIsRefusedAndItsParentGoesOn) {
  const std::string job = comm::testing::unique_name("experts-fork");
  const auto said = comm::testing::as_processes(2, [&](int rank) -> std::string {
    Communicator comm = Communicator::connect(comm::testing::options_for(rank, 2, job));
    std::optional<ExpertExchange> exchange(std::in_place, comm,
                                           ExpertExchangeOptions{.experts = 4, .k = 2});
    Call call(*exchange, rank, 1.0F);
    exchange->dispatch_async(call.routing, {call.payload()}).wait();
    if (rank == 1) {
      comm.barrier();  // the child has ended
    }
    Request first = exchange->combine_async(call.routing, call.back());
    Request second = exchange->combine_async(call.routing, call.back());
    int status = 0;
    if (rank == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::alarm(60);  // ends a child that hangs
        _exit(in_child(exchange, call, first, second));
      }
      ::waitpid(child, &status, 0);
      comm.barrier();
    }
    first.wait();
    second.wait();
    call.expect_sums();
    return status == 0 ? "" : "the child ended with status " + std::to_string(status);
  });
  EXPECT_EQ(said[0], "");
  EXPECT_EQ(said[1], "");
}

TEST(ExpertAsync, AKeptRequestKeepsNothingOfTheExchange) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    detail::ExpertExchangeState state(comm, {.experts = 4});
    state.meet();
    Request kept = experts::start_async(state, nullptr, [](detail::ExpertExchangeState&) {});
    EXPECT_EQ(state.identity.use_count(), 2);
    EXPECT_TRUE(state.async->close());
    EXPECT_EQ(state.identity.use_count(), 1);
    EXPECT_TRUE(kept.test());
    kept.wait();
  });
}

TEST(ExpertAsync, WhatIsNoExceptionOfTheStandardEndsTheWorld) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    detail::ExpertExchangeState state(comm, {.experts = 4});
    state.meet();
    const std::string text = text_of([&] {  // starting may fail too: rank 0 may be ahead
      experts::start_async(state, nullptr, [&](detail::ExpertExchangeState& own) {
        if (comm.rank() == 0) {
          throw 7;
        }
        own.comm->barrier();
      }).wait();
    });
    EXPECT_NE(text.find("an asynchronous call failed"), std::string::npos) << text;
    if (state.async != nullptr) {
      state.async->close();
    }
  });
}

// Rank 1 starts after rank 0 has announced the call.
void end_the_exchange_in_its_thread(Communicator& comm) {
  auto exchange =
      std::make_unique<ExpertExchange>(comm, ExpertExchangeOptions{.experts = 4, .k = 2});
  Call call(*exchange, comm.rank(), 1.0F);
  exchange->dispatch_async(call.routing, {call.payload()}).wait();
  if (comm.rank() == 1) {
    comm.barrier();
  }
  Request request = exchange->combine_async(call.routing, call.back());
  if (comm.rank() == 0) {
    request.on_done([&](const Error*) { exchange.reset(); });
    comm.barrier();
  }
  std::promise<void>().get_future().wait_for(std::chrono::minutes(1));
}

TEST(ExpertAsyncDeathTest, AFunctionThatEndsTheExchangeOfItsThreadIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(comm::testing::run_ranks(2, end_the_exchange_in_its_thread),
               "destroys the exchange on whose thread it runs");
}

TEST(ExpertAsync, ARankThatDiesIsNamed) {
  const std::string job = comm::testing::unique_name("experts-async");
  const auto said = comm::testing::as_processes(3, [&](int rank) -> std::string {
    Communicator comm = Communicator::connect(comm::testing::options_for(rank, 3, job));
    ExpertExchange exchange(comm, {.experts = 4, .k = 2});
    Call call(exchange, rank, 1.0F);
    try {  // others may still be in dispatch when rank 2 has finished
      exchange.dispatch_async(call.routing, {call.payload()}).wait();
      if (rank == 2) {
        ::raise(SIGKILL);
      }
      exchange.combine_async(call.routing, call.back()).wait();
    } catch (const Error& error) {
      return error.code() == ErrorCode::peer_lost && error.context().peer == 2 ? "" : error.what();
    }
    return "combined without rank 2";
  });
  EXPECT_EQ(said[0], "");
  EXPECT_EQ(said[1], "");
}

// Rank 0 waits for rank 1, which makes no call.
TEST(ExpertAsync, ALimitOfItsOwnEndsTheWait) {
  comm::testing::run_ranks(2, [](Communicator& comm) {
    ExpertExchange exchange(comm, {.experts = 4, .k = 2});
    Call call(exchange, comm.rank(), 1.0F);
    exchange.dispatch_async(call.routing, {call.payload()}).wait();
    if (comm.rank() == 0) {
      Request request = exchange.combine_async(call.routing, call.back());
      EXPECT_NE(text_of([&] { request.wait(50); }).find("did not end within 50 ms"),
                std::string::npos);
    } else {
      EXPECT_NE(text_of([&] { comm.barrier(); }).find("did not end within 50 ms"),
                std::string::npos);
    }
  });
}

}  // namespace
}  // namespace unisono
