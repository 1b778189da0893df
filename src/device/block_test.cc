// Tests the kernel's source with delayed and reordered signals, for every algorithm of the
// catalogue.
#include "device/block.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "algorithms/catalog.h"
#include "base/collectives.h"
#include "base/testing_sanitizers.h"
#include "device/bind.h"
#include "device/testing_block.h"

namespace unisono::device {
namespace {

constexpr std::uint32_t kChannels = 2;
constexpr std::size_t kScratch = std::size_t{1} << 16;

constexpr int kSeeds = repetitions(1000);

// Each seed starts about ten threads, which compete for processors.
int seeds() {
  return std::getenv("UNISONO_TEST_FULL") != nullptr ? 10000
                                                     : kSeeds;  // NOLINT(concurrency-mt-unsafe)
}

// An operation on all ranks, started as a group would start it.
class Operation {
 public:
  Operation(const Algorithm& algorithm, int ranks, std::size_t count, const GraphOptions& options,
            std::uint64_t part)
      : schedule_(build_schedule(algorithm, complete(algorithm, {.ranks = ranks}))),
        options_(options),
        count_(count),
        ranks_(static_cast<std::size_t>(ranks)) {
    const Graph graph = build_graph(schedule_, options);
    const std::size_t words = kChannels * ranks_;
    for (int rank = 0; rank < ranks; ++rank) {
      images_.push_back(
          bind_image(graph, schedule_, rank, {.element = sizeof(std::int64_t), .count = count}));
      arenas_.push_back(std::vector<std::uint64_t>(words + 2 * words * sizeof(Record) / 8 +
                                                   kChannels + kScratch / 8));
      inputs_.emplace_back(ranks_ * count + 1);
      outputs_.emplace_back(ranks_ * count + 1, -1);
    }
    status_.resize(kChannels * ranks_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (std::size_t i = 0; i < inputs_[rank].size(); ++i) {
        inputs_[rank][i] = static_cast<std::int64_t>(i * 31 + rank * 7);
      }
    }
    before_ = inputs_;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      launches_.push_back(launch(rank, part));
    }
  }
  std::vector<BoundImage>& images() { return images_; }

  void run(std::uint64_t seed) {
    std::vector<std::thread> threads;
    for (const Launch& launch : launches_) {
      threads.emplace_back([&launch, seed] { run_on_cpu(launch, Dtype::i64, seed); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  // Returns the number of ranks with a wrong result.
  int wrong() const {
    int result = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const auto& got = options_.in_place ? inputs_[rank] : outputs_[rank];
      bool right = true;
      for (std::size_t i = 0; i < output_count(rank); ++i) {
        right = right && got[i] == expected(rank, i);
      }
      result += right ? 0 : 1;
    }
    return result;
  }

 private:
  Launch launch(std::size_t rank, std::uint64_t part) {
    const BoundImage& image = images_[rank];
    Launch launch;
    launch.image = {.passes = image.passes.data(),
                    .operands = image.operands.data(),
                    .waits = image.waits.data(),
                    .pass_count = static_cast<std::uint32_t>(image.passes.size()),
                    .exit_waits = image.exit_waits,
                    .exit_wait_count = image.exit_wait_count,
                    .slots = image.slots,
                    .stride = image.stride};
    for (std::size_t r = 0; r < ranks_; ++r) {
      launch.arenas[r] = reinterpret_cast<std::uint64_t>(arenas_[r].data());
    }
    const std::size_t words = kChannels * ranks_;
    launch.arena.records = words * 8;
    launch.arena.epochs = launch.arena.records + 2 * words * sizeof(Record);
    launch.arena.scratch = launch.arena.epochs + kChannels * 8;
    launch.shifts = kNoShifts;
    launch.input = reinterpret_cast<std::uint64_t>(inputs_[rank].data());
    launch.output =
        options_.in_place ? launch.input : reinterpret_cast<std::uint64_t>(outputs_[rank].data());
    std::uint64_t begin = 0;
    std::uint64_t slice = 0;
    slice_of(image.most_bytes, 0, kChannels, begin, slice);
    launch.part = std::max<std::uint64_t>(slice, 128);
    if (image.slots != 0) {
      const std::uint64_t room = kScratch / kChannels / image.slots / 128 * 128;
      launch.part = std::min({launch.part, room, part});
    }
    launch.parts = std::max<std::uint64_t>(1, (slice + launch.part - 1) / launch.part);
    launch.rank = static_cast<std::uint32_t>(rank);
    launch.ranks = static_cast<std::uint32_t>(ranks_);
    launch.channels = kChannels;
    launch.stop = &stop_;
    launch.status = &status_[rank * kChannels];
    return launch;
  }
  std::size_t output_count(std::size_t rank) const {
    const Holding output = traits_of(schedule_.collective).output;
    if (output == Holding::nothing || (output == Holding::whole_at_root && rank != 0)) {
      return 0;
    }
    return output == Holding::part || cut_of(schedule_.collective) == VectorCut::none
               ? count_
               : ranks_ * count_;
  }
  std::int64_t expected(std::size_t rank, std::size_t i) const {
    const auto total = [&](std::size_t at) {
      std::int64_t sum = 0;
      for (const auto& input : before_) {
        sum += input[at];
      }
      return sum;
    };
    switch (schedule_.collective) {
      case Collective::all_reduce:
      case Collective::reduce:
        return total(i);
      case Collective::reduce_scatter:
        return total(rank * count_ + i);
      case Collective::broadcast:
        return before_[0][i];
      case Collective::scatter:
        return before_[0][rank * count_ + i];
      case Collective::gather:
      case Collective::all_gather:
        return before_[i / count_][i % count_];
      default:
        return before_[i / count_][rank * count_ + i % count_];
    }
  }

  static constexpr std::uint64_t kNoShifts[kMaxRanks] = {};
  Schedule schedule_;
  GraphOptions options_;
  std::size_t count_;
  std::size_t ranks_;
  std::vector<BoundImage> images_ = {};
  std::vector<std::vector<std::uint64_t>> arenas_ = {};
  std::vector<std::vector<std::int64_t>> inputs_ = {}, outputs_ = {}, before_ = {};
  std::vector<Status> status_ = {};
  std::vector<Launch> launches_ = {};
  std::uint32_t stop_ = 0;
};

TEST(DeviceLateWord, IsOneWaitForOneOperation) {
  constexpr std::uint64_t kEpoch = std::uint64_t{7} << 32;
  EXPECT_EQ(late_rank(late_word(63, kEpoch + 1)), 63U);
  EXPECT_TRUE(is_same_wait(late_word(1, kEpoch + 1), late_word(2, kEpoch + 9)));
  EXPECT_FALSE(is_same_wait(late_word(1, kEpoch + 1), late_word(1, 2 * kEpoch + 1)));
  EXPECT_FALSE(is_same_wait(0, 0));
}

bool may_be_in_place(const Algorithm& algorithm) {
  return algorithm.in_place && cut_of(algorithm.collective) == VectorCut::none &&
         moves_data(algorithm.collective);
}

TEST(DeviceBlock, EveryAlgorithmIsRightHoweverSignalsArrive) {
  std::mt19937_64 random(1);
  const auto algorithms = catalog();
  for (int seed = 0; seed < seeds(); ++seed) {
    const Algorithm& algorithm = *algorithms[static_cast<std::size_t>(seed) % algorithms.size()];
    const int ranks = static_cast<int>(random() % 4) + (random() % 8 == 0 ? 5 : 1);
    const GraphOptions options{.in_place = may_be_in_place(algorithm) && random() % 2 == 0,
                               .direct = random() % 4 != 0};
    const std::size_t count = random() % 3 == 0 ? random() % 2000 : random() % 40;
    if (is_scan(algorithm.collective) ||  // not supported on device memory
        !can_serve(algorithm, complete(algorithm, {.ranks = ranks}))) {
      continue;
    }
    Operation operation(algorithm, ranks, count, options,
                        random() % 2 == 0 ? 256 : ~std::uint64_t{0});
    operation.run(static_cast<std::uint64_t>(seed));
    ASSERT_EQ(operation.wrong(), 0)
        << to_string(algorithm.collective) << ' ' << algorithm.name << ", " << ranks << " ranks, "
        << count << " elements, in place " << options.in_place << ", direct " << options.direct
        << ", seed " << seed;
  }
}

#ifndef UNISONO_SANITIZED
// Proves that these tests can fail: a pass without its wait runs too early for some seed.
TEST(DeviceBlock, AWaitThatIsMissingGivesWrongResults) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather}) {
    const Algorithm& algorithm = *find_algorithm(collective, "ring");
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < 3000 && wrong == 0; ++seed) {
      Operation operation(algorithm, 4, 64, {}, ~std::uint64_t{0});
      for (BoundImage& image : operation.images()) {
        for (std::size_t k = 0; k < image.waits.size(); ++k) {
          image.waits[k].count = std::min<std::uint32_t>(image.waits[k].count, 1);
        }
      }
      // The launches point to the images, so changing the images changes the launches.
      operation.run(seed);
      wrong += operation.wrong();
    }
    EXPECT_GT(wrong, 0) << to_string(collective);
  }
}
#endif

TEST(DeviceBlock, SlicesOfAllChannelsMakeTheWhole) {
  for (const std::uint64_t bytes : {0ULL, 1ULL, 127ULL, 128ULL, 129ULL, 4096ULL, 1000003ULL}) {
    for (const std::uint32_t channels : {1U, 2U, 7U, 32U}) {
      std::uint64_t next = 0;
      for (std::uint32_t c = 0; c < channels; ++c) {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        slice_of(bytes, c, channels, begin, end);
        EXPECT_EQ(begin, next);
        EXPECT_LE(begin, end);
        next = end;
      }
      EXPECT_EQ(next, bytes);
    }
  }
}

}  // namespace
}  // namespace unisono::device
