#include <chrono>
#include <span>
#include <thread>

#include "mistakes.h"

namespace unisono::testing {
namespace {

using namespace std::chrono_literals;

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
               comm.barrier();  // rank 1 does not come
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
  std::vector<Mistake> all = requests();
  const auto more = endings();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace unisono::testing
