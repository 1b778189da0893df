#include "unisono/parallel/overlap.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "parallel/core_use.h"
#include "parallel/floats.h"
#include "parallel/refuse.h"
#include "parallel/stopwatch.h"

namespace unisono::parallel {
namespace {

constexpr int kTag = 3;

void expect(const char* call, const char* name, std::size_t have, std::size_t rows,
            std::size_t width) {
  if (have != rows * width) {
    refuse(call,
           std::string("`") + name + "` has " + std::to_string(have) + " elements, not " +
               std::to_string(rows) + " rows of " + std::to_string(width),
           "call shard_range() for the rows of a rank");
  }
}

std::size_t rows_of(const char* call, std::size_t elements, std::size_t width) {
  if (width == 0 || elements % width != 0) {
    refuse(call,
           std::to_string(elements) + " elements are not whole rows of " + std::to_string(width),
           "choose a width that divides the buffer");
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

// Runs the collectives of consecutively computed blocks: in the background, or between the
// computations, as each rank decides for itself. Between hosts they always run in the background:
// the network needs time, but not the core, and eight short blocking calls cost more than the
// thread switches.
class Collectives {
 public:
  explicit Collectives(Communicator& communicator)
      : communicator_(communicator),
        behind_(communicator.hosts() > 1 || can_move_behind(communicator)) {}

  template <typename Compute>
  void compute(const Compute& compute) {
    CoreUse::of_this_thread().observe(compute);
  }
  // A sum that is in progress or done.
  struct Sum {
    SumOnce sum;
    Request request;
  };
  void start(const Call& call, std::vector<Sum>& sums) {
    SumOnce sum(communicator_, call);
    if (behind_) {
      Request request = communicator_.run_async(sum.call());
      sums.push_back({std::move(sum), std::move(request)});
    } else {
      waits_.time([&] { communicator_.run(sum.call()); });
      sum.finish();
    }
  }
  void wait(std::vector<Sum>& sums) {
    waits_.time([&] {
      for (Sum& sum : sums) {
        sum.request.wait();
        sum.sum.finish();
      }
    });
    sums.clear();
  }
  Overlapped told() const { return {.exposed_us = waits_.us()}; }

 private:
  Communicator& communicator_;
  bool behind_;
  Stopwatch waits_;
};

}  // namespace

namespace detail {

Overlapped all_gather_then(Communicator& communicator, const void* shard, std::size_t shard_count,
                           AnySpan whole, std::size_t width,
                           const std::function<void(Range rows)>& compute) {
  constexpr const char* kCall = "all_gather_then";
  const Neighbours at(communicator);
  const std::size_t rows = rows_of(kCall, whole.size(), width);
  const std::size_t row_bytes = width * size_of(whole.dtype());
  auto* data = static_cast<std::byte*>(whole.data());
  const auto block = [&](int step) {
    return shard_range(rows, at.ranks, (at.rank - step + at.ranks) % at.ranks);
  };
  const Range mine = block(0);
  expect(kCall, "shard", shard_count, mine.count, width);
  if (shard != data + mine.first * row_bytes && mine.count != 0) {
    std::memmove(data + mine.first * row_bytes, shard, mine.count * row_bytes);
  }
  // Each rank decides for itself; the messages are the same either way.
  const bool behind = can_move_behind(communicator);
  Stopwatch waits;
  for (int step = 0; step < at.ranks; ++step) {
    const Range here = block(step);
    Request sent;
    Request received;
    const bool more = step + 1 < at.ranks;
    if (more) {
      const Range coming = block(step + 1);
      std::byte* const to = data + coming.first * row_bytes;
      const std::byte* const from = data + here.first * row_bytes;
      const std::size_t coming_bytes = coming.count * row_bytes;
      const std::size_t here_bytes = here.count * row_bytes;
      if (behind) {
        received = unisono::detail::ExactReceives::recv_async(communicator, to, coming_bytes,
                                                              at.before, kTag, -1);
        sent = communicator.send_async(from, here_bytes, at.next, kTag);
      } else {
        waits.time([&] {
          unisono::detail::ExactReceives::send_recv(communicator, from, here_bytes, at.next, to,
                                                    coming_bytes, at.before, kTag, -1);
        });
      }
    }
    CoreUse::of_this_thread().observe([&] { compute(here); });
    if (more && behind) {
      waits.time([&] {
        received.wait();
        sent.wait();
      });
    }
  }
  return {.exposed_us = waits.us()};
}

Overlapped then_reduce_scatter(Communicator& communicator, std::size_t rows, AnySpan shard,
                               std::size_t width, const WriteRows& compute) {
  constexpr const char* kCall = "then_reduce_scatter";
  const Neighbours at(communicator);
  expect(kCall, "shard", shard.size(), shard_range(rows, at.ranks, at.rank).count, width);
  if (kernels::find_reduce(shard.dtype(), ReduceOp::sum) == nullptr) {
    refuse(kCall, "elements of " + std::string(to_string(shard.dtype())) + " cannot be summed",
           "use a type that all_reduce() can sum");
  }
  // All ranks compute the block of one rank after the other, in pieces. Each piece is summed to
  // that rank while the next one is computed. This takes one pass over the received data; a ring of
  // sends would copy the data first. Only the sum of the last piece is exposed.
  constexpr int kPieces = 8;  // at least, over all blocks
  constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
  const std::size_t row_bytes = width * size_of(shard.dtype());
  Collectives collectives(communicator);
  // Memory for two blocks: one is summed while the next one is computed.
  struct Part {
    std::unique_ptr<std::byte[]> data = {};
    std::vector<Collectives::Sum> sums = {};
  };
  std::array<Part, 2> parts;
  const std::size_t most_bytes =
      ((rows + static_cast<std::size_t>(at.ranks) - 1) / static_cast<std::size_t>(at.ranks)) *
      row_bytes;
  for (int owner = 0; owner < at.ranks; ++owner) {
    Part& room = parts[static_cast<std::size_t>(owner % 2)];
    collectives.wait(room.sums);
    const Range block = shard_range(rows, at.ranks, owner);
    const std::size_t bytes = block.count * row_bytes;
    const int pieces =
        std::clamp(static_cast<int>(std::min<std::size_t>(bytes / kPieceBytes, kPieces)), 1,
                   std::max(1, (kPieces + at.ranks - 1) / at.ranks));
    if (owner != at.rank && room.data == nullptr) {
      room.data = std::make_unique_for_overwrite<std::byte[]>(most_bytes);
    }
    std::byte* const out =
        owner == at.rank ? static_cast<std::byte*>(shard.data()) : room.data.get();
    for (int i = 0; i < pieces; ++i) {
      const Range piece = shard_range(block.count, pieces, i);
      std::byte* const part = out + piece.first * row_bytes;
      collectives.compute(
          [&] { compute({.first = block.first + piece.first, .count = piece.count}, part); });
      collectives.start({.collective = Collective::reduce,
                         .in = part,
                         .out = owner == at.rank ? part : nullptr,
                         .count = piece.count * width,
                         .dtype = shard.dtype(),
                         .reduction = sum,
                         .root = owner},
                        room.sums);
    }
  }
  for (Part& room : parts) {
    collectives.wait(room.sums);
  }
  return collectives.told();
}

Overlapped then_all_reduce(Communicator& communicator, AnySpan whole, std::size_t width, int blocks,
                           const WriteRows& compute) {
  constexpr const char* kCall = "then_all_reduce";
  const std::size_t rows = rows_of(kCall, whole.size(), width);
  if (blocks < 1) {
    refuse(kCall, std::to_string(blocks) + " blocks", "cut the rows into at least one");
  }
  Collectives collectives(communicator);
  std::vector<Collectives::Sum> sums;
  for (int i = 0; i < blocks; ++i) {
    const Range block = shard_range(rows, blocks, i);
    std::byte* out =
        static_cast<std::byte*>(whole.data()) + block.first * width * size_of(whole.dtype());
    collectives.compute([&] { compute(block, out); });
    collectives.start({.collective = Collective::all_reduce,
                       .in = out,
                       .out = out,
                       .count = block.count * width,
                       .dtype = whole.dtype(),
                       .reduction = sum},
                      sums);
  }
  collectives.wait(sums);
  return collectives.told();
}

}  // namespace detail
}  // namespace unisono::parallel
