// Ranks of one process whose kernels run side by side: on one GPU, a stream each, or in the shim, a
// thread for each block.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "algorithms/catalog.h"
#include "device/bind.h"

namespace unisono::device {

struct Memory {  // where a world's memory is
  virtual ~Memory() = default;
  virtual void* allocate(std::size_t bytes) = 0;  // zeroed
  virtual void* host(std::size_t bytes) = 0;      // both can use it; zeroed
  virtual void put(void* to, const void* from, std::size_t bytes) = 0;
  virtual void get(void* to, const void* from, std::size_t bytes) = 0;
};

struct Prepared {
  std::vector<Launch> launches;  // by rank
  std::vector<BoundImage> images;
  Graph graph;
};

class World {
 public:
  World(Memory& memory, int ranks, std::uint32_t channels, std::size_t scratch, std::size_t buffer)
      : memory_(memory), ranks_(ranks), channels_(channels), scratch_(scratch) {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto n = static_cast<std::size_t>(ranks);
      Arena arena;
      arena.counts = static_cast<std::uint64_t*>(memory.allocate(channels * n * 8));
      arena.records = static_cast<Record*>(memory.allocate(channels * 2 * n * sizeof(Record)));
      arena.epochs = static_cast<std::uint64_t*>(memory.allocate(channels * 8));
      arena.scratch = static_cast<unsigned char*>(memory.allocate(scratch));
      arenas.push_back(arena);
      inputs.push_back(static_cast<unsigned char*>(memory.allocate(buffer + 256)));
      outputs.push_back(static_cast<unsigned char*>(memory.allocate(buffer + 256)));
      images_.push_back(static_cast<unsigned char*>(memory.allocate(kImage)));
      status.push_back(static_cast<Status*>(memory.host(channels * sizeof(Status))));
    }
    stop = static_cast<std::uint32_t*>(memory.host(64));
  }
  // Not while kernels run.
  Prepared prepare(const Schedule& schedule, std::span<const engine::Sizes> sizes,
                   const GraphOptions& options, std::size_t input_shift = 0,
                   std::size_t output_shift = 0, std::uint64_t part_limit = ~std::uint64_t{0}) {
    Prepared prepared;
    prepared.graph = build_graph(schedule, options);
    prepared.images = bind_images(prepared.graph, schedule, sizes);
    for (int r = 0; r < ranks_; ++r) {
      const auto rank = static_cast<std::size_t>(r);
      const BoundImage& image = prepared.images[rank];
      unsigned char* at = images_[rank];
      const auto upload = [&](const auto& list) {
        using T = typename std::decay_t<decltype(list)>::value_type;
        const auto* place = reinterpret_cast<const T*>(at);
        if (!list.empty()) {
          memory_.put(at, list.data(), list.size() * sizeof(T));
        }
        at += (list.size() * sizeof(T) + 63) / 64 * 64;
        if (at > images_[rank] + kImage) {
          std::abort();
        }
        return place;
      };
      Launch launch;
      launch.image.passes = upload(image.passes);
      launch.image.operands = upload(image.operands);
      launch.image.waits = upload(image.waits);
      launch.image.pass_count = static_cast<std::uint32_t>(image.passes.size());
      launch.image.exit_waits = image.exit_waits;
      launch.image.exit_wait_count = image.exit_wait_count;
      launch.image.slots = image.slots;
      launch.image.stride = image.stride;
      for (std::size_t k = 0; k < arenas.size(); ++k) {
        launch.arenas[k] = arenas[k];
      }
      launch.input = reinterpret_cast<std::uint64_t>(inputs[rank] + input_shift);
      launch.output = options.in_place ? launch.input
                                       : reinterpret_cast<std::uint64_t>(outputs[rank] + output_shift);
      launch.signature = 7;
      const std::uint64_t lines = (image.most_bytes + 127) / 128;
      const std::uint64_t slice = (lines + channels_ - 1) / channels_ * 128;
      launch.part = std::max<std::uint64_t>(slice, 128);
      if (image.slots != 0) {
        const std::uint64_t room = scratch_ / channels_ / image.slots / 128 * 128;
        launch.part = std::min(launch.part, std::min(room, part_limit));
      }
      launch.parts = std::max<std::uint64_t>(1, (slice + launch.part - 1) / launch.part);
      launch.divisor = static_cast<std::uint32_t>(ranks_);
      launch.rank = static_cast<std::uint32_t>(r);
      launch.ranks = static_cast<std::uint32_t>(ranks_);
      launch.channels = channels_;
      launch.stop = stop;
      launch.status = status[rank];
      prepared.launches.push_back(launch);
    }
    return prepared;
  }

  std::vector<Arena> arenas;
  std::vector<unsigned char*> inputs, outputs;
  std::vector<Status*> status;
  std::uint32_t* stop = nullptr;

 private:
  static constexpr std::size_t kImage = 1 << 20;
  Memory& memory_;
  int ranks_;
  std::uint32_t channels_;
  std::size_t scratch_;
  std::vector<unsigned char*> images_;
};

}  // namespace unisono::device
