#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "mistakes.h"

namespace unisono::testing {
namespace {

struct Unmap {
  void* memory;
  std::size_t bytes;
  ~Unmap() { munmap(memory, bytes); }
};

using Counts = std::vector<std::size_t>;

Call sum_of(const float* in, float* out, std::size_t count) {
  return {.collective = Collective::all_reduce,
          .in = in,
          .out = out,
          .count = count,
          .dtype = Dtype::f32};
}

std::vector<Mistake> buffers() {
  return {
      {.name = "null_in",
       .make =
           [](Communicator& comm) {
             std::vector<float> out(4);
             comm.run(sum_of(nullptr, out.data(), 4));
           }},
      {.name = "null_out",
       .make =
           [](Communicator& comm) {
             const std::vector<float> in(4);
             comm.run(sum_of(in.data(), nullptr, 4));
           }},
      {.name = "overlap",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(8);
             comm.run(sum_of(data.data(), data.data() + 2, 4));
           }},
      {.name = "span_lengths",
       .make =
           [](Communicator& comm) {
             const std::vector<float> in(4);
             std::vector<float> out(7);
             comm.all_gather(std::span<const float>(in), std::span(out));
           }},
      {.name = "span_lengths_v",
       .make =
           [](Communicator& comm) {
             const std::vector<float> in(4);
             std::vector<float> out(7);
             comm.all_gather_v(std::span<const float>(in), std::span(out), Counts{4, 4});
           }},
      {.name = "send_null",
       .make = [](Communicator& comm) { comm.send(nullptr, 8, 1 - comm.rank()); }},
      {.name = "send_negative",
       .make =
           [](Communicator& comm) {
             const int bytes = -4;
             std::array<std::byte, 8> data = {};
             comm.send(data.data(), static_cast<std::size_t>(bytes), 1 - comm.rank());
           }},
      {.name = "send_async_negative",
       .make =
           [](Communicator& comm) {
             const int bytes = -4;
             std::array<std::byte, 8> data = {};
             comm.send_async(data.data(), static_cast<std::size_t>(bytes), 1 - comm.rank()).wait();
           }},
      {.name = "recv_negative",
       .make =
           [](Communicator& comm) {
             const int bytes = -1;
             std::array<std::byte, 8> data = {};
             comm.recv(data.data(), static_cast<std::size_t>(bytes), 1 - comm.rank());
           }},
      {.name = "exchange_negative",
       .make =
           [](Communicator& comm) {
             const int bytes = -8;
             std::array<std::byte, 8> data = {};
             comm.send_recv(data.data(), static_cast<std::size_t>(bytes), 1 - comm.rank(),
                            data.data(), data.size(), 1 - comm.rank());
           }},
      {.name = "allocate_negative",
       .ranks = 1,
       .make =
           [](Communicator& comm) {
             const int bytes = -4096;
             static_cast<void>(comm.allocate(static_cast<std::size_t>(bytes)));
           }},
      {.name = "register_negative",
       .ranks = 1,
       .make =
           [](Communicator& comm) {
             const int bytes = -4096;
             std::array<std::byte, 8> data = {};
             static_cast<void>(
                 comm.register_buffer({data.data(), static_cast<std::size_t>(bytes)}));
           }},
      {.name = "register_null",
       .ranks = 1,
       .make =
           [](Communicator& comm) {
             Region region = comm.register_buffer({static_cast<std::byte*>(nullptr), 8192});
           }},
      {.name = "register_file_mapping",
       .make =
           [](Communicator& comm) {
             constexpr std::size_t kBytes = 8192;
             const int file = memfd_create("data", 0);
             void* memory = nullptr;
             if (ftruncate(file, kBytes) == 0) {
               memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
             }
             close(file);
             const Unmap unmap{memory, kBytes};
             Region region = comm.register_buffer({static_cast<std::byte*>(memory), kBytes});
           }},
      {.name = "register_twice",
       .ranks = 1,
       .make =
           [](Communicator& comm) {
             std::vector<std::byte> memory(std::size_t{1} << 16);
             const auto all = std::span(memory);
             const Region inner = comm.register_buffer(all.subspan(16384, 16384));
             const Region outer = comm.register_buffer(all);
           }},
  };
}

std::vector<Mistake> numbers() {
  return {
      {.name = "bad_root",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(4);
             comm.broadcast(std::span(data), 2);
           }},
      {.name = "negative_count",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(4);
             comm.run(sum_of(data.data(), data.data(), static_cast<std::size_t>(-1)));
           }},
      {.name = "counts_without_v",
       .make =
           [](Communicator& comm) {
             const std::vector<float> in(2);
             std::vector<float> out(4);
             const Counts counts = {2};
             comm.run({.collective = Collective::all_gather,
                       .in = in.data(),
                       .out = out.data(),
                       .count = 2,
                       .dtype = Dtype::f32,
                       .counts = counts});
           }},
      {.name = "counts_too_short",
       .ranks = 4,
       .make =
           [](Communicator& comm) {
             const std::vector<float> in(4);
             std::vector<float> out(4);
             comm.all_gather_v(std::span<const float>(in), std::span(out), Counts{4});
           }},
      {.name = "counts_to_itself",
       .make =
           [](Communicator& comm) {
             const std::vector<float> in(4);
             std::vector<float> out(3);
             const Counts send = comm.rank() == 0 ? Counts{3, 1} : Counts{1, 3};
             const Counts receive = comm.rank() == 0 ? Counts{2, 1} : Counts{1, 2};
             comm.all_to_all_v(std::span<const float>(in), send, std::span(out), receive);
           }},
      {.name = "send_to_nobody",
       .make =
           [](Communicator& comm) {
             const int data = 0;
             comm.send(&data, sizeof(data), 7);
           }},
      {.name = "no_threads",
       .ranks = 1,
       .make = [](Communicator&) { run_threads(0, [](Communicator&) {}); }},
  };
}

std::vector<Mistake> operations() {
  return {
      {.name = "unsupported_op",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(4);
             comm.all_reduce(std::span(data), ReduceOp::band);
           }},
      {.name = "average_of_bool",
       .make =
           [](Communicator& comm) {
             std::array<bool, 4> data{};
             comm.all_reduce(std::span<bool>(data), avg);
           }},
      {.name = "user_op_without_function",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(4);
             comm.all_reduce(std::span(data), Reduction::custom({}));
           }},
      {.name = "unknown_algorithm",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(4);
             Call call = sum_of(data.data(), data.data(), 4);
             call.algorithm = "rign";
             comm.run(call);
           }},
      {.name = "algorithm_without_v",
       .make =
           [](Communicator& comm) {
             const Counts none = {0, 0};
             comm.run({.collective = Collective::all_to_all_v,
                       .counts = none,
                       .recv_counts = none,
                       .algorithm = "bruck"});
           }},
      {.name = "not_a_dtype",
       .make =
           [](Communicator& comm) {
             std::vector<float> data(4);
             Call call = sum_of(data.data(), data.data(), 4);
             call.dtype = static_cast<Dtype>(99);
             comm.run(call);
           }},
      {.name = "forced_malformed",
       .ranks = 1,
       .make = [](Communicator&) {},
       .algorithm = "all_reduce:ring"},
      {.name = "forced_unknown",
       .ranks = 1,
       .make = [](Communicator&) {},
       .algorithm = "all_reduce=rign"},
      {.name = "forced_without_v",
       .ranks = 1,
       .make = [](Communicator&) {},
       .algorithm = "all_to_all_v=bruck"},
  };
}

}  // namespace

std::vector<Mistake> argument_mistakes() {
  std::vector<Mistake> all = buffers();
  for (const auto& more : {numbers(), operations()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace unisono::testing
