// Reshards run by ranks, on one host or on several (UNISONO_TEST_WORLD): random ones, long ones,
// mistakes, and a rank that dies.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "draw.h"
#include "unisono/error.hpp"

namespace unisono::parallel::testing {
namespace {

using Body = std::function<void(Communicator&)>;

comm::testing::Body connected(int ranks, const Body& body) {
  const std::string job = comm::testing::unique_name("reshard");
  return [=](int rank) -> std::string {
    ConnectOptions options = comm::testing::options_for(rank, ranks, job);
    options.timeout_ms = 60'000;
    Communicator comm = Communicator::connect(options);
    body(comm);
    return "";
  };
}

void expect_done(const std::vector<std::string>& said) {
  for (const std::string& text : said) {
    EXPECT_EQ(text, "");
  }
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::internal, what);  // also passed from another process
}

// Memory for one rank's part, with a gap behind each row.
struct Part {
  std::vector<float> memory = {};
  Tensor tensor = {};
};

Part part_of_shape(const std::optional<std::vector<std::size_t>>& shape, std::size_t gap) {
  Part part;
  if (!shape) {
    return part;
  }
  part.tensor = Tensor::packed(nullptr, Dtype::f32, *shape);
  std::ptrdiff_t stride = 1;
  for (std::size_t dim = shape->size(); dim-- > 0;) {
    part.tensor.strides[dim] = stride;
    stride = stride * static_cast<std::ptrdiff_t>((*shape)[dim]) +
             (dim + 1 == shape->size() ? static_cast<std::ptrdiff_t>(gap) : 0);
  }
  part.memory.assign(static_cast<std::size_t>(stride) + gap + 1, -1);
  part.tensor.data = part.memory.data();
  return part;
}

// Calls body(element of the memory, row-major index in the whole tensor).
template <typename Visit>
void for_each_owned(const Part& part, const Drawn& side, std::size_t position, const Index& shape,
                    const Visit& visit) {
  std::size_t count = 1;
  for (const std::size_t size : shape) {
    count *= size;
  }
  for (std::size_t element = 0; element < count; ++element) {
    std::size_t rest = element;
    std::ptrdiff_t at = 0;
    bool has = true;
    for (std::size_t dim = shape.size(); dim-- > 0;) {
      const auto index = owned(side, position, dim, shape[dim], rest % shape[dim]);
      has = has && index.has_value();
      at += has ? static_cast<std::ptrdiff_t>(*index) * part.tensor.strides[dim] : 0;
      rest /= shape[dim];
    }
    if (has) {
      visit(static_cast<float*>(part.tensor.data)[at], element);
    }
  }
}

std::optional<std::size_t> position_of(const Drawn& side, int rank) {
  const auto found = std::find(side.ranks.begin(), side.ranks.end(), rank);
  return found == side.ranks.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(found - side.ranks.begin()));
}

std::size_t summands_in(const Drawn& side) {
  std::size_t most = 0;
  for (std::size_t position = 0; position < side.positions(); ++position) {
    most = std::max(most, summand_of(side, position));
  }
  return most + 1;
}

// Three tensors at once, twice.
void run_case(Communicator& comm, std::uint32_t seed) {
  std::vector<Case> cases;
  std::vector<ReshardTensor> tensors;
  for (std::uint32_t i = 0; i < 3; ++i) {
    cases.push_back(draw(seed * 3 + i, comm.size()));
    tensors.push_back({.name = std::to_string(i),
                       .shape = cases[i].shape,
                       .from = cases[i].from.layout(),
                       .to = cases[i].to.layout()});
  }
  Reshard reshard = Reshard::create(comm, tensors);
  std::vector<Part> in;
  std::vector<Part> out;
  for (std::size_t t = 0; t < 3; ++t) {
    in.push_back(part_of_shape(reshard.in_shape(t), seed % 3));
    out.push_back(part_of_shape(reshard.out_shape(t), seed % 2));
  }
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<Tensor> in_tensors;
    std::vector<Tensor> out_tensors;
    for (std::size_t t = 0; t < 3; ++t) {
      if (const auto position = position_of(cases[t].from, comm.rank())) {
        const auto factor = static_cast<float>(summand_of(cases[t].from, *position) + 1);
        for_each_owned(in[t], cases[t].from, *position, cases[t].shape,
                       [&](float& value, std::size_t element) {
                         value = static_cast<float>(element + static_cast<unsigned>(turn)) * factor;
                       });
      }
      in_tensors.push_back(in[t].tensor);
      out_tensors.push_back(out[t].tensor);
    }
    reshard.run(in_tensors, out_tensors);
    for (std::size_t t = 0; t < 3; ++t) {
      const std::size_t n = summands_in(cases[t].from);
      const auto factor = static_cast<float>(n * (n + 1) / 2);
      if (!reshard.complete(t)) {
        fail("seed " + std::to_string(seed) + ": tensor " + std::to_string(t) + " is not complete");
      }
      const auto position = position_of(cases[t].to, comm.rank());
      if (!position) {
        continue;
      }
      for_each_owned(out[t], cases[t].to, *position, cases[t].shape,
                     [&](const float& value, std::size_t element) {
                       const float wanted =
                           static_cast<float>(element + static_cast<unsigned>(turn)) * factor;
                       if (value != wanted) {
                         fail("seed " + std::to_string(seed) + ": element " +
                              std::to_string(element) + " of tensor " + std::to_string(t) + " is " +
                              std::to_string(value) + " instead of " + std::to_string(wanted));
                       }
                     });
    }
  }
}

class ReshardRun : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ReshardRun, ::testing::Values(1, 2, 3, 5, 8));

TEST_P(ReshardRun, BringsEveryElement) {
  expect_done(comm::testing::as_threads(GetParam(), connected(GetParam(), [](Communicator& comm) {
                                          for (std::uint32_t seed = 0; seed < 40; ++seed) {
                                            run_case(comm, seed);
                                          }
                                        })));
}

TEST(ReshardProcesses, BringEveryElement) {
  expect_done(comm::testing::as_processes(4, connected(4, [](Communicator& comm) {
                                            for (std::uint32_t seed = 100; seed < 130; ++seed) {
                                              run_case(comm, seed);
                                            }
                                          })));
}

// Many messages per pair, elements that are passed on, and a sum that a rank passes on as well.
TEST(ReshardProcesses, SendInSegments) {
  constexpr std::size_t kRows = 1500;
  constexpr std::size_t kColumns = 1024;
  expect_done(comm::testing::as_processes(
      5, connected(5, [](Communicator& comm) {
        for (const char* from : {"a=1 on 0", "a=2 on 0-1: a=shard(1)", "a=2 on 0-1: a=partial"}) {
          Reshard reshard = Reshard::create(comm, {{.name = "w",
                                                    .shape = {kRows, kColumns},
                                                    .from = MeshLayout::parse(from),
                                                    .to = MeshLayout::parse("b=3 on 2-4")}});
          Part in = part_of_shape(reshard.in_shape(0), 0);
          Part out = part_of_shape(reshard.out_shape(0), 0);
          const bool partial = std::string(from).ends_with("partial");
          const bool shard = std::string(from).ends_with("shard(1)");
          const std::size_t width = shard ? kColumns / 2 : kColumns;
          const std::size_t first = shard ? width * static_cast<std::size_t>(comm.rank()) : 0;
          const auto value = [](std::size_t row, std::size_t column) {
            return static_cast<float>(row * 7 + column * 3);
          };
          for (std::size_t i = 0; comm.rank() < 2 && i + 1 < in.memory.size(); ++i) {
            in.memory[i] = value(i / width, first + i % width);
          }
          const std::vector<Tensor> ins = {in.tensor};
          const std::vector<Tensor> outs = {out.tensor};
          reshard.run(ins, outs);
          for (std::size_t i = 0; comm.rank() >= 2 && i < kRows * kColumns; ++i) {
            if (out.memory[i] != value(i / kColumns, i % kColumns) * (partial ? 2.0F : 1.0F)) {
              fail("element " + std::to_string(i) + " from " + from);
            }
          }
        }
      })));
}

#if !defined(UNISONO_SANITIZED)
// Sizes in MiB.
std::size_t memory_of_process(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (std::size_t kib = 0; word == key + ":" && status >> kib) {
      return kib >> 10U;
    }
  }
  fail("no " + key + " in /proc/self/status");
}

// Messages are packed here. Far more bytes move than fit into the messages in flight.
TEST(ReshardProcesses, KeepFewMessagesInMemory) {
  constexpr std::size_t kSize = 8192;
  constexpr std::size_t kMostMib = 40;  // 16 messages of 1 MiB, and the transport's own
  expect_done(comm::testing::as_processes(
      2, connected(2, [](Communicator& comm) {
        Reshard reshard = Reshard::create(comm, {{.name = "w",
                                                  .shape = {kSize, kSize},
                                                  .from = MeshLayout::parse("a=2: a=shard(1)"),
                                                  .to = MeshLayout::parse("a=2: a=shard(0)")}});
        Part in = part_of_shape(reshard.in_shape(0), 0);
        Part out = part_of_shape(reshard.out_shape(0), 0);
        for (std::size_t i = 0; i + 1 < in.memory.size(); ++i) {
          in.memory[i] = static_cast<float>(i % 1000);
        }
        std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // resets the high-water mark
        const std::size_t before = memory_of_process("VmRSS");
        const std::vector<Tensor> ins = {in.tensor};
        const std::vector<Tensor> outs = {out.tensor};
        reshard.run(ins, outs);
        const std::size_t more = memory_of_process("VmHWM") - before;
        if (more > kMostMib) {
          fail(std::to_string(more) + " MiB for messages");
        }
        const std::size_t row = kSize / 2 - 1;  // the last row of the part, in a received column
        const std::size_t column = comm.rank() == 0 ? kSize - 1 : 0;
        const std::size_t from =
            (row + (comm.rank() == 0 ? 0 : kSize / 2)) * (kSize / 2) + column % (kSize / 2);
        if (out.memory[row * kSize + column] != static_cast<float>(from % 1000)) {
          fail("another element");
        }
      })));
}
#endif

std::string first_line(const Error& error) {
  const std::string what = error.what();
  return what.substr(0, what.find('\n'));
}

TEST(ReshardMistakes, AreNamedOnAllRanks) {
  std::vector<std::string> said(2);
  expect_done(comm::testing::as_threads(
      2, connected(2, [&](Communicator& comm) {
        const auto tensor = [&](std::size_t size) {
          return ReshardTensor{.name = "w",
                               .shape = {size},
                               .from = MeshLayout::parse("a=2: a=shard(0)"),
                               .to = MeshLayout::parse("a=2")};
        };
        std::string& text = said[static_cast<std::size_t>(comm.rank())];
        try {
          static_cast<void>(Reshard::create(comm, {tensor(comm.rank() == 0 ? 4 : 5)}));
        } catch (const Error& error) {
          text = first_line(error);
        }
        Reshard reshard = Reshard::create(comm, {tensor(4)});
        std::vector<float> in(2);
        std::vector<float> out(4);
        const std::vector<Tensor> ins = {Tensor::of(in, {2})};
        std::vector<Tensor> outs = {Tensor::of(out, {4})};
        outs[0] = comm.rank() == 1 ? Tensor{} : outs[0];
        try {
          reshard.run(ins, outs);
        } catch (const Error& error) {
          text += "; " + first_line(error);
        }
        outs[0] = Tensor::of(out, {4});
        const std::vector<Tensor> shared = {outs[0].slice(0, 1, 2)};
        try {
          reshard.run(comm.rank() == 0 ? shared : ins, outs);
        } catch (const Error& error) {
          text += "; " + first_line(error);
        }
      })));
  EXPECT_EQ(said[0],
            "mismatch: reshard: rank 1 has another tensor 0 than rank 0; here it is \"w\", f32 [4] "
            "from a=2: a=shard(0) to a=2; mismatch: reshard: rank 1 cannot take part; usage: "
            "reshard: `in` of \"w\" "
            "and `out` of \"w\" share memory on rank 0");
  EXPECT_EQ(said[1],
            "mismatch: reshard: rank 1 has another tensor 0 than rank 0; here it is \"w\", f32 [5] "
            "from a=2: a=shard(0) to a=2; usage: reshard: `out` of \"w\" on rank 1 is null; "
            "mismatch: reshard: rank 0 cannot take part");
}

// A rank dies while it packs a message: the last part of its source cannot be read. The others
// learn which rank died, their sources are unchanged, and the tensor is not complete.
TEST(ReshardDeath, IsToldToTheOthers) {
  constexpr std::size_t kColumns = std::size_t{1} << 20U;
  const auto said = comm::testing::as_processes(
      3, connected(3, [](Communicator& comm) {
        Reshard reshard = Reshard::create(comm, {{.name = "w",
                                                  .shape = {3, kColumns},
                                                  .from = MeshLayout::parse("a=3: a=shard(0)"),
                                                  .to = MeshLayout::parse("a=3")},
                                                 {.name = "v",
                                                  .shape = {kColumns},
                                                  .from = MeshLayout::parse("a=1 on 2"),
                                                  .to = MeshLayout::parse("a=3")},
                                                 {.name = "elsewhere",
                                                  .shape = {8},
                                                  .from = MeshLayout::parse("a=1 on 1"),
                                                  .to = MeshLayout::parse("a=1 on 1")}});
        const std::size_t bytes = 2 * kColumns * sizeof(float);
        void* memory =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
          fail("no memory");
        }
        const std::span<float> values(static_cast<float*>(memory), 2 * kColumns);
        std::fill(values.begin(), values.end(), static_cast<float>(comm.rank()));
        Tensor in = Tensor::packed(memory, Dtype::f32, {1, kColumns});
        in.strides = {2 * kColumns, 2};  // so that messages are packed
        std::vector<float> out(3 * kColumns, -1);
        std::vector<float> v(kColumns, 2);
        std::vector<float> v_out(kColumns, -1);
        std::vector<float> small(8);
        std::vector<float> small_out(8);
        const std::vector<Tensor> ins = {in, Tensor::of(v, {kColumns}), Tensor::of(small, {8})};
        const std::vector<Tensor> outs = {Tensor::of(out, {3, kColumns}),
                                          Tensor::of(v_out, {kColumns}),
                                          Tensor::of(small_out, {8})};
        reshard.run(ins, outs);
        if (!reshard.complete(0) || !reshard.complete(1) || out[kColumns] != 1) {
          fail("not complete");
        }
        std::fill(v_out.begin(), v_out.end(), -1);
        if (comm.rank() == 1) {
          ::mprotect(static_cast<std::byte*>(memory) + bytes / 4 * 3, bytes / 4, PROT_NONE);
        }
        try {
          reshard.run(ins, outs);
        } catch (const Error& error) {
          if (error.code() != ErrorCode::peer_lost || error.context().peer != 1) {
            fail(error.what());
          }
          if (std::count(values.begin(), values.end(), static_cast<float>(comm.rank())) !=
              static_cast<std::ptrdiff_t>(values.size())) {
            fail("the source has changed");
          }
          if (reshard.complete(0)) {
            fail("complete without its last part");
          }
          // The tensor may have arrived; if it is reported as complete, all of it has.
          if (reshard.complete(1) && std::count(v_out.begin(), v_out.end(), 2.0F) !=
                                         static_cast<std::ptrdiff_t>(v_out.size())) {
            fail("called complete, and has not arrived");
          }
          if (!reshard.complete(2)) {
            fail("this rank has no part that could be missing");
          }
          return;
        }
        fail("nobody is missing");
      }));
  EXPECT_EQ(said[0], "");
  EXPECT_EQ(said[2], "");
}

}  // namespace
}  // namespace unisono::parallel::testing
