#include <chrono>
#include <exception>
#include <span>
#include <thread>

#include "mistakes.h"

namespace unisono::testing {
namespace {

using namespace std::chrono_literals;

// Two threads of rank 0 make the same call, and one of them is refused. Then `go_on` lets rank 1
// enter the call, for which the other thread waits.
void call_twice_at_once(const std::function<void()>& call, const std::function<void()>& go_on) {
  std::exception_ptr refused;
  const auto one = [&] {
    try {
      call();
    } catch (const Error&) {
      refused = std::current_exception();
      go_on();
    }
  };
  std::thread other(one);
  one();
  other.join();
  if (refused != nullptr) {
    std::rethrow_exception(refused);
  }
}

std::vector<Mistake> threads() {
  return {
      {.name = "second_thread_in_collective",
       .make =
           [](Communicator& comm) {
             int token = 0;
             if (comm.rank() == 0) {
               call_twice_at_once([&] { comm.barrier(); },
                                  [&] { comm.send(&token, sizeof(token), 1); });
             } else {
               comm.recv(&token, sizeof(token), 0);
               comm.barrier();
             }
           }},
      {.name = "second_thread_in_recv",
       .make =
           [](Communicator& comm) {
             int token = 0;
             if (comm.rank() == 0) {
               call_twice_at_once(
                   [&] {
                     int mine = 0;
                     comm.recv(&mine, sizeof(mine), 1);
                   },
                   [&] { comm.barrier(); });
             } else {
               comm.barrier();
               comm.send(&token, sizeof(token), 0);
             }
           }},
  };
}

std::vector<Mistake> requests() {
  return {
      {.name = "wait_twice",
       .ranks = 1,
       .make =
           [](Communicator& comm) {
             Request request = comm.barrier_async();
             request.wait();
             request.wait();
           }},
      {.name = "wait_for_nothing",
       .ranks = 1,
       .make =
           [](Communicator&) {
             Request request;
             request.wait();
           }},
      {.name = "blocking_in_group",
       .make = [](Communicator& comm) { comm.group([&] { comm.barrier(); }); }},
      {.name = "wait_after_group",
       .ranks = 1,
       .make =
           [](Communicator& comm) {
             Request request;
             comm.group([&] { request = comm.barrier_async(); });
             request.wait();
           }},
      {.name = "empty_communicator",
       .make =
           [](Communicator& comm) {
             Communicator none = comm.split(-1, 0);
             std::vector<float> data(4);
             none.all_to_all(std::span<const float>(data), std::span(data));
           }},
      {.name = "empty_plan",
       .ranks = 1,
       .make =
           [](Communicator& comm) {
             Plan plan = comm.plan({.collective = Collective::barrier});
             const Plan other = std::move(plan);
             plan.start();  // NOLINT(bugprone-use-after-move): the mistake
           }},
  };
}

std::vector<Mistake> endings() {
  return {
      {.name = "use_after_abort",
       .make =
           [](Communicator& comm) {
             if (comm.rank() == 0) {
               comm.abort("the input is damaged");
             }
             comm.barrier();
           }},
      {.name = "abort_while_waiting",
       .make =
           [](Communicator& comm) {
             if (comm.rank() == 0) {
               std::jthread other([&] {
                 std::this_thread::sleep_for(20ms);
                 comm.abort("the user pressed a key");
               });
               comm.barrier();  // rank 1 does not arrive
             } else {
               int never = 0;
               comm.recv(&never, sizeof(never), 0);
             }
           }},
      {.name = "never_calls",
       .make =
           [](Communicator& comm) {
             comm.barrier();
             if (comm.rank() == 1) {
               int never = 0;
               comm.recv(&never, sizeof(never), 1, 0, 20'000);
             }
             std::vector<float> data(8);
             comm.all_reduce(std::span(data), sum);
           },
       .timeout_ms = 1500,
       .algorithm = "all_reduce=ring"},
      {.name = "groups_in_another_order",
       .make =
           [](Communicator& comm) {
             Communicator first = comm.split(0, comm.rank());
             Communicator second = comm.split(0, -comm.rank());
             if (comm.rank() == 0) {
               first.barrier(1500);
               second.barrier();
             } else {
               second.barrier(20'000);
               first.barrier();
             }
           },
       .algorithm = "barrier=dissemination"},
      {.name = "recv_never_sent",
       .make =
           [](Communicator& comm) {
             int data = 0;
             if (comm.rank() == 1) {
               comm.recv(&data, sizeof(data), 0, 3, 1500);
             } else {
               comm.barrier(20'000);
             }
           }},
      {.name = "left",
       .make =
           [](Communicator& comm) {
             if (comm.rank() == 1) {
               const Communicator gone = std::move(comm);
               throw std::runtime_error("left");
             }
           }},
      {.name = "left_before_recv",
       .make =
           [](Communicator& comm) {
             if (comm.rank() == 1) {
               const Communicator gone = std::move(comm);
               throw std::runtime_error("left");
             }
             int data = 0;
             comm.recv_async(&data, sizeof(data), 1).wait();
           }},
  };
}

}  // namespace

std::vector<Mistake> order_mistakes() {
  std::vector<Mistake> all;
  for (const auto& some : {requests(), threads(), endings()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace unisono::testing
