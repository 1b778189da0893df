#include "device/bind.h"

#include <algorithm>

namespace unisono::device {

std::vector<BoundImage> bind_images(const Graph& graph, const Schedule& schedule,
                                    std::span<const engine::Sizes> sizes) {
  std::vector<std::vector<engine::ChunkPlace>> places;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    places.push_back(engine::lay_out(schedule, rank, sizes[static_cast<std::size_t>(rank)]));
  }
  std::vector<BoundImage> images;
  for (const RankGraph& rank : graph.ranks) {
    BoundImage image;
    const auto put_waits = [&](const std::vector<After>& waits) {
      for (const After& wait : waits) {
        image.waits.push_back({.rank = static_cast<std::uint32_t>(wait.rank),
                               .count = static_cast<std::uint32_t>(wait.passes)});
      }
      return static_cast<std::uint32_t>(waits.size());
    };
    for (const GraphPass& pass : rank.passes) {
      Pass bound;
      const auto chunk = static_cast<std::size_t>(pass.chunk);
      const auto put = [&](const Cell& cell) {
        const auto owner = static_cast<std::size_t>(cell.rank);
        const engine::ChunkPlace& place = places[owner][chunk];
        bound.bytes = std::max<std::uint64_t>(bound.bytes, place.bytes);
        Operand operand{.rank = static_cast<std::int16_t>(cell.rank)};
        switch (cell.place) {
          case engine::OperandPlace::input:
            operand.place = Place::input;
            operand.offset = place.input;
            break;
          case engine::OperandPlace::output:
            operand.place = Place::output;
            operand.offset = place.output;
            break;
          default:
            operand.place = Place::scratch;
            operand.slot = static_cast<std::uint32_t>(cell.index);
        }
        image.operands.push_back(operand);
      };
      bound.operands = static_cast<std::uint32_t>(image.operands.size());
      bound.sources = static_cast<std::uint32_t>(pass.sources.size());
      bound.targets = static_cast<std::uint32_t>(pass.targets.size());
      std::for_each(pass.sources.begin(), pass.sources.end(), put);
      std::for_each(pass.targets.begin(), pass.targets.end(), put);
      bound.signals = pass.signals;
      bound.finish = pass.finish ? 1 : 0;
      bound.waits = static_cast<std::uint32_t>(image.waits.size());
      bound.wait_count = put_waits(pass.waits);
      image.most_bytes = std::max(image.most_bytes, bound.bytes);
      image.passes.push_back(bound);
    }
    image.exit_waits = static_cast<std::uint32_t>(image.waits.size());
    image.exit_wait_count = put_waits(rank.exit);
    image.slots = static_cast<std::uint32_t>(graph.slots);
    images.push_back(std::move(image));
  }
  std::uint64_t most_bytes = 0;
  std::size_t stride = 0;
  for (const BoundImage& image : images) {
    most_bytes = std::max(most_bytes, image.most_bytes);
    stride = std::max(stride, image.passes.size());
  }
  for (BoundImage& image : images) {
    image.most_bytes = most_bytes;
    image.stride = static_cast<std::uint32_t>(stride);
  }
  return images;
}

}  // namespace unisono::device
