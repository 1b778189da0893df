#include <cstdint>
#include <span>
#include <stdexcept>

#include "mistakes.h"

namespace unisono::testing {
namespace {

template <typename T>
void sum_all(Communicator& comm, std::size_t count, Reduction reduction = sum,
             std::string_view algorithm = {}) {
  std::vector<T> data(count);
  comm.run({.collective = Collective::all_reduce,
            .in = data.data(),
            .out = data.data(),
            .count = count,
            .dtype = detail::dtype_of<T>(),
            .reduction = reduction,
            .algorithm = algorithm});
}

// Rank 1 expects no data from the broadcast, and finds its 8 bytes in the next operation.
void leave_over(Communicator& comm, std::size_t next_count) {
  std::vector<std::uint8_t> data(comm.rank() == 0 ? 8 : 0);
  comm.broadcast(std::span(data), 0);
  sum_all<std::uint8_t>(comm, next_count);
}

}  // namespace

std::vector<Mistake> disagreement_mistakes() {
  using Counts = std::vector<std::size_t>;
  return {
      {.name = "disagree_collective",
       .make =
           [](Communicator& comm) {
             if (comm.rank() == 0) {
               sum_all<float>(comm, 8);
             } else {
               std::vector<float> data(8);
               comm.broadcast(std::span(data), 0);
             }
           }},
      {.name = "disagree_count",
       .make = [](Communicator& comm) { sum_all<float>(comm, comm.rank() == 0 ? 8 : 9); }},
      {.name = "disagree_count_large",
       .make =
           [](Communicator& comm) { sum_all<float>(comm, comm.rank() == 0 ? 100'000 : 200'000); }},
      {.name = "disagree_dtype",
       .make =
           [](Communicator& comm) {
             comm.rank() == 0 ? sum_all<float>(comm, 8) : sum_all<std::int32_t>(comm, 8);
           }},
      {.name = "disagree_op",
       .make = [](Communicator& comm) { sum_all<float>(comm, 8, comm.rank() == 0 ? sum : max); }},
      {.name = "disagree_algorithm",
       .make =
           [](Communicator& comm) {
             sum_all<float>(comm, 8, sum, comm.rank() == 0 ? "ring" : "flat");
           }},
      {.name = "disagree_root",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(8);
             comm.broadcast(std::span(data), comm.rank());
           }},
      {.name = "disagree_order",
       .make =
           [](Communicator& comm) {
             if (comm.rank() == 0) {
               comm.barrier();
             }
             sum_all<float>(comm, 8);
             if (comm.rank() == 1) {
               comm.barrier();
             }
           }},
      {.name = "disagree_in_group",  // the sum of the counts is the same
       .make =
           [](Communicator& comm) {
             std::vector<float> data(8);
             const auto parts = std::span(data);
             const std::size_t cut = comm.rank() == 0 ? 2 : 6;
             comm.group([&] {
               static_cast<void>(comm.all_reduce_async(parts.first(cut), sum));
               static_cast<void>(comm.all_reduce_async(parts.subspan(cut), sum));
             });
           }},
      {.name = "disagree_counts_v",
       .make =
           [](Communicator& comm) {
             const Counts counts = comm.rank() == 0 ? Counts{3, 3} : Counts{4, 3};
             const std::vector<float> in(3);
             std::vector<float> out(counts[0] + counts[1]);
             comm.all_gather_v(std::span<const float>(in), std::span(out), counts);
           }},
      {.name = "disagree_counts_v_of_one_sum",
       .make =
           [](Communicator& comm) {
             const Counts counts = comm.rank() == 0 ? Counts{2, 4} : Counts{3, 3};
             const std::vector<float> in(counts[static_cast<std::size_t>(comm.rank())]);
             std::vector<float> out(6);
             comm.all_gather_v(std::span<const float>(in), std::span(out), counts);
           }},
      {.name = "disagree_factor",
       .make =
           [](Communicator& comm) {
             sum_all<float>(comm, 8, Reduction::premul_sum(comm.rank() == 0 ? 0.5 : 0.25));
           }},
      {.name = "disagree_sent_and_received",
       .make =
           [](Communicator& comm) {
             const Counts send = comm.rank() == 0 ? Counts{1, 5} : Counts{1, 1};
             const Counts receive = comm.rank() == 0 ? Counts{1, 1} : Counts{2, 1};
             const std::vector<float> in(6);
             std::vector<float> out(receive[0] + receive[1]);
             comm.all_to_all_v(std::span<const float>(in).first(send[0] + send[1]), send,
                               std::span(out), receive);
           }},
      {.name = "disagree_expects_nothing",
       .make =
           [](Communicator& comm) {
             const Counts send = comm.rank() == 0 ? Counts{1, 5} : Counts{1, 1};
             const Counts receive = comm.rank() == 0 ? Counts{1, 1} : Counts{0, 1};
             const std::vector<float> in(6);
             std::vector<float> out(receive[0] + receive[1]);
             comm.all_to_all_v(std::span<const float>(in).first(send[0] + send[1]), send,
                               std::span(out), receive);
           }},
      {.name = "disagree_sent_nothing",
       .make =
           [](Communicator& comm) {
             const Counts send = comm.rank() == 0 ? Counts{1, 0} : Counts{1, 1};
             const Counts receive = comm.rank() == 0 ? Counts{1, 1} : Counts{2, 1};
             const std::vector<float> in(2);
             std::vector<float> out(receive[0] + receive[1]);
             comm.all_to_all_v(std::span<const float>(in).first(send[0] + send[1]), send,
                               std::span(out), receive);
             comm.barrier();
           }},
      {.name = "disagree_of_nothing",
       .make =
           [](Communicator& comm) {
             std::vector<float> nothing;
             if (comm.rank() == 0) {
               comm.broadcast(std::span(nothing), 0);
             } else {
               comm.all_reduce(std::span(nothing), sum);
             }
             comm.barrier();
           }},
      {.name = "disagree_last_call",  // rank 1 sends nothing, waits for nobody, and leaves
       .make =
           [](Communicator& comm) {
             std::vector<float> data(comm.rank() == 0 ? 8 : 0);
             comm.broadcast(std::span(data), 1);
             const Communicator gone = std::move(comm);
             throw std::runtime_error("left");
           }},
      {.name = "left_over_longer", .make = [](Communicator& comm) { leave_over(comm, 4); }},
      {.name = "left_over_shorter", .make = [](Communicator& comm) { leave_over(comm, 16); }},
      {.name = "disagree_in_split_group",
       .ranks = 4,
       .make =
           [](Communicator& comm) {
             Communicator half = comm.split(comm.rank() / 2, comm.rank());
             if (comm.rank() >= 2) {
               sum_all<float>(half, comm.rank() == 2 ? 8 : 9);
             }
             comm.barrier();
           }},
      // Rank 1 expects no data for the sum, and rank 0 waits for it there.
      {.name = "disagree_then_recv",
       .make =
           [](Communicator& comm) {
             sum_all<float>(comm, comm.rank() == 0 ? 8 : 0);
             int next = 0;
             if (comm.rank() == 0) {
               comm.send(&next, sizeof(next), 1);
             } else {
               comm.recv(&next, sizeof(next), 0);
             }
           }},
      // Rank 0 has left the group in which rank 1 waits for it, and waits for rank 1 in another
      // group.
      {.name = "disagree_in_group_left",
       .ranks = 3,
       .make =
           [](Communicator& comm) {
             Communicator group = comm.split(comm.rank() / 2, comm.rank());
             if (comm.rank() < 2) {
               std::vector<float> data(comm.rank() == 0 ? 0 : 8);
               group.broadcast(std::span(data), 0);
             }
           }},
      {.name = "recv_of_another_size",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(8);
             if (comm.rank() == 0) {
               comm.send(data.data(), 32, 1, 5);
             } else {
               comm.recv(data.data(), 16, 0, 5);
             }
           }},
  };
}

}  // namespace unisono::testing
