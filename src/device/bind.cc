#include "device/bind.h"

#include <algorithm>
#include <functional>

#include "base/collectives.h"

namespace unisono::device {
namespace {

using engine::OperandPlace;

// The block that a chunk belongs to: its destination and its source rank.
struct BlockOf {
  int to = 0;
  int from = 0;
  bool receives = false;
};

BlockOf block_of(const Schedule& schedule, int rank, int chunk) {
  const int n = schedule.ranks;
  const int root = schedule.root;
  switch (schedule.collective) {
    case Collective::all_to_all_v:
      return {.to = chunk % n, .from = chunk / n, .receives = chunk % n == rank};
    case Collective::scatter_v:
      return {.to = chunk, .from = root, .receives = chunk == rank};
    case Collective::reduce_scatter_v:
      return {.to = chunk, .from = rank, .receives = chunk == rank};
    case Collective::gather_v:
      return {.to = root, .from = chunk, .receives = rank == root};
    default:  // all_gather_v: each rank sends one block to all ranks
      return {.to = rank, .from = chunk, .receives = true};
  }
}

PassOperand operand_of(const GraphCell& cell) {
  PassOperand operand{.rank = static_cast<std::int16_t>(cell.rank)};
  switch (cell.place) {
    case OperandPlace::input:
      operand.place = OperandKind::input;
      break;
    case OperandPlace::output:
      operand.place = OperandKind::output;
      break;
    default:
      operand.place = OperandKind::scratch;
      operand.slot = static_cast<std::uint32_t>(cell.index);
  }
  return operand;
}

using Fill = std::function<void(const GraphPass&, const GraphCell&, KernelPass&, PassOperand&)>;

BoundImage bind(const Graph& graph, int of, const Fill& fill) {
  const RankGraph& rank = graph.ranks[static_cast<std::size_t>(of)];
  BoundImage image;
  const auto put_waits = [&](const std::vector<After>& waits) {
    for (const After& wait : waits) {
      image.waits.push_back({.rank = static_cast<std::uint32_t>(wait.rank),
                             .count = static_cast<std::uint32_t>(wait.passes)});
    }
    return static_cast<std::uint32_t>(waits.size());
  };
  for (const GraphPass& pass : rank.passes) {
    KernelPass bound;
    bound.operands = static_cast<std::uint32_t>(image.operands.size());
    bound.sources = static_cast<std::uint32_t>(pass.sources.size());
    bound.targets = static_cast<std::uint32_t>(pass.targets.size());
    bound.signals = pass.signals;
    bound.finish = pass.finish ? 1 : 0;
    const auto put = [&](const GraphCell& cell) {
      PassOperand operand = operand_of(cell);
      fill(pass, cell, bound, operand);
      image.operands.push_back(operand);
    };
    std::for_each(pass.sources.begin(), pass.sources.end(), put);
    std::for_each(pass.targets.begin(), pass.targets.end(), put);
    bound.waits = static_cast<std::uint32_t>(image.waits.size());
    bound.wait_count = put_waits(pass.waits);
    image.passes.push_back(bound);
  }
  image.exit_waits = static_cast<std::uint32_t>(image.waits.size());
  image.exit_wait_count = put_waits(rank.exit);
  image.slots = static_cast<std::uint32_t>(graph.slots);
  for (const RankGraph& one : graph.ranks) {
    image.stride = std::max(image.stride, static_cast<std::uint32_t>(one.passes.size()));
  }
  return image;
}

}  // namespace

BoundImage bind_image(const Graph& graph, const Schedule& schedule, int rank,
                      const engine::Sizes& sizes) {
  std::vector<std::vector<engine::ChunkPlace>> places;
  for (int one = 0; one < schedule.ranks; ++one) {
    places.push_back(engine::lay_out(schedule, one, sizes));
  }
  BoundImage image = bind(
      graph, rank,
      [&](const GraphPass& pass, const GraphCell& cell, KernelPass& bound, PassOperand& operand) {
        const engine::ChunkPlace& place =
            places[static_cast<std::size_t>(cell.rank)][static_cast<std::size_t>(pass.chunk)];
        bound.bytes = std::max<std::uint64_t>(bound.bytes, place.bytes);
        operand.offset = operand.place == OperandKind::input    ? place.input
                         : operand.place == OperandKind::output ? place.output
                                                                : 0;
      });
  for (const auto& of_rank : places) {
    for (const engine::ChunkPlace& place : of_rank) {
      image.most_bytes = std::max<std::uint64_t>(image.most_bytes, place.bytes);
    }
  }
  return image;
}

BoundImage bind_blocks(const Graph& graph, const Schedule& schedule, int rank) {
  return bind(graph, rank,
              [&](const GraphPass& pass, const GraphCell&, KernelPass& bound, PassOperand&) {
                const BlockOf block = block_of(schedule, rank, pass.chunk);
                bound.to = static_cast<std::uint16_t>(block.to);
                bound.from = static_cast<std::uint16_t>(block.from);
                bound.receives = block.receives ? 1 : 0;
              });
}

bool goes_by_blocks(const Graph& graph, const Schedule& schedule) {
  const int blocks = cut_of(schedule.collective) == VectorCut::pairs
                         ? schedule.ranks * schedule.ranks
                         : schedule.ranks;
  const auto is_own = [](int rank, const GraphCell& cell) {
    return cell.rank == rank || cell.place != OperandPlace::output;
  };
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const GraphPass& pass : graph.ranks[static_cast<std::size_t>(rank)].passes) {
      const auto fits = [&](const GraphCell& cell) { return is_own(rank, cell); };
      // A rank may read another rank's block only if the block is for this rank.
      const bool receives = block_of(schedule, rank, pass.chunk).receives ||
                            std::all_of(pass.sources.begin(), pass.sources.end(),
                                        [&](const GraphCell& cell) { return cell.rank == rank; });
      if (!receives || !std::all_of(pass.sources.begin(), pass.sources.end(), fits) ||
          !std::all_of(pass.targets.begin(), pass.targets.end(), fits)) {
        return false;
      }
    }
  }
  return schedule.chunks == blocks;
}

}  // namespace unisono::device
