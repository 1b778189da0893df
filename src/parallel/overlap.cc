#include "unisono/parallel/overlap.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "parallel/stopwatch.h"

namespace unisono::parallel {
namespace {

constexpr int kTag = 3;

[[noreturn]] void refuse(const char* call, const std::string& what, const std::string& next) {
  throw Error(ErrorCode::usage, std::string(call) + ": " + what + "\n" + next);
}

void expect(const char* call, const char* name, std::size_t have, std::size_t rows,
            std::size_t width) {
  if (have != rows * width) {
    refuse(call,
           std::string("`") + name + "` has " + std::to_string(have) + " elements, not " +
               std::to_string(rows) + " rows of " + std::to_string(width),
           "shard_range() says which rows a rank has");
  }
}

std::size_t rows_of(const char* call, std::size_t elements, std::size_t width) {
  if (width == 0 || elements % width != 0) {
    refuse(call, std::to_string(elements) + " elements are no rows of " + std::to_string(width),
           "let the width divide the buffer");
  }
  return elements / width;
}

struct Neighbours {
  explicit Neighbours(const Communicator& comm)
      : ranks(comm.size()),
        rank(comm.rank()),
        next((rank + 1) % ranks),
        before((rank + ranks - 1) % ranks) {}
  int ranks;
  int rank;
  int next;
  int before;
};

}  // namespace

Overlapped all_gather_then(Communicator& communicator, std::span<const float> shard,
                           std::span<float> whole, std::size_t width,
                           const std::function<void(Range rows)>& compute) {
  constexpr const char* kCall = "all_gather_then";
  const Neighbours at(communicator);
  const std::size_t rows = rows_of(kCall, whole.size(), width);
  const auto block = [&](int step) {
    return shard_range(rows, at.ranks, (at.rank - step + at.ranks) % at.ranks);
  };
  const Range mine = block(0);
  expect(kCall, "shard", shard.size(), mine.count, width);
  if (shard.data() != whole.data() + mine.first * width) {
    std::copy(shard.begin(), shard.end(),
              whole.begin() + static_cast<std::ptrdiff_t>(mine.first * width));
  }
  const auto bytes = [&](const Range& range) { return range.count * width * sizeof(float); };
  Stopwatch waits;
  for (int step = 0; step < at.ranks; ++step) {
    const Range here = block(step);
    Request sent;
    Request received;
    const bool last = step + 1 == at.ranks;
    if (!last) {
      const Range coming = block(step + 1);
      received = communicator.recv_async(whole.data() + coming.first * width, bytes(coming),
                                         at.before, kTag);
      sent = communicator.send_async(whole.data() + here.first * width, bytes(here), at.next, kTag);
    }
    compute(here);
    if (!last) {
      waits.time([&] {
        received.wait();
        sent.wait();
      });
    }
  }
  return {.exposed_us = waits.us()};
}

Overlapped then_reduce_scatter(
    Communicator& communicator, std::size_t rows, std::span<float> shard, std::size_t width,
    const std::function<void(Range rows, std::span<float> out)>& compute) {
  constexpr const char* kCall = "then_reduce_scatter";
  const Neighbours at(communicator);
  expect(kCall, "shard", shard.size(), shard_range(rows, at.ranks, at.rank).count, width);
  const kernels::ReduceFunction add = kernels::find_reduce(Dtype::f32, ReduceOp::sum);
  std::vector<float> sums;  // of the block that is to be passed on, on its way
  Request sent;
  Stopwatch waits;
  for (int step = 0; step < at.ranks; ++step) {
    // The own block is the last one, when the sums of all others have come.
    const Range block = shard_range(rows, at.ranks, (at.rank - 1 - step + 2 * at.ranks) % at.ranks);
    const std::size_t count = block.count * width;
    const bool last = step + 1 == at.ranks;
    std::vector<float> coming(step == 0 ? 0 : count);
    Request received;
    if (step != 0) {
      received = communicator.recv_async(coming.data(), count * sizeof(float), at.before, kTag);
    }
    std::vector<float> own(last ? 0 : count);
    float* out = last ? shard.data() : own.data();
    compute(block, {out, count});
    if (step != 0) {
      waits.time([&] { received.wait(); });
      const void* sources[] = {coming.data(), out};
      void* target = out;
      add(&target, 1, sources, 2, count, kernels::Store::cached);
      waits.time([&] { sent.wait(); });
    }
    if (!last) {
      sums = std::move(own);
      sent = communicator.send_async(sums.data(), count * sizeof(float), at.next, kTag);
    }
  }
  return {.exposed_us = waits.us()};
}

Overlapped then_all_reduce(Communicator& communicator, std::span<float> whole, std::size_t width,
                           int blocks,
                           const std::function<void(Range rows, std::span<float> out)>& compute) {
  constexpr const char* kCall = "then_all_reduce";
  const std::size_t rows = rows_of(kCall, whole.size(), width);
  if (blocks < 1) {
    refuse(kCall, std::to_string(blocks) + " blocks", "cut the rows into at least one");
  }
  std::vector<Request> sums;
  for (int i = 0; i < blocks; ++i) {
    const Range block = shard_range(rows, blocks, i);
    const std::span<float> out = whole.subspan(block.first * width, block.count * width);
    compute(block, out);
    sums.push_back(communicator.all_reduce_async(out, sum));
  }
  Stopwatch waits;
  waits.time([&] {
    for (Request& request : sums) {
      request.wait();
    }
  });
  return {.exposed_us = waits.us()};
}

}  // namespace unisono::parallel
