#include "network_model/simulator/program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "network_model/simulator/blocks.h"
#include "network_model/simulator/protocols.h"
#include "network_model/simulator/rank_set.h"
#include "network_model/simulator/streamed.h"
#include "network_model/simulator/unroll.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

class Maker {
 public:
  Maker(const Workload& workload, const SimulationOptions& options, PathTable& paths)
      : workload_(workload),
        options_(options),
        paths_(paths),
        met_(workload.ranks),
        slowness_(static_cast<std::size_t>(workload.ranks), 1),
        late_us_(static_cast<std::size_t>(workload.ranks)) {
    for (const RankFault& fault : options.rank_faults) {
      check_rank(fault.rank, "a fault");
      late_us_[static_cast<std::size_t>(fault.rank)] += fault.late_us;
      slowness_[static_cast<std::size_t>(fault.rank)] *= fault.factor;
    }
  }

  Play run() {
    play_.is_awaited.resize(workload_.items.size());
    play_.is_own_awaited.resize(workload_.items.size());
    for (std::size_t i = 0; i < workload_.items.size(); ++i) {
      play_.items.push_back(make(workload_.items[i], i));
      await(i, workload_.items[i].after, play_.is_awaited);
      await(i, workload_.items[i].after_own, play_.is_own_awaited);
      play_.items.back().after = workload_.items[i].after;
      play_.items.back().after_own = workload_.items[i].after_own;
    }
    return std::move(play_);
  }

 private:
  static void await(std::size_t item, const std::vector<int>& earlier,
                    std::vector<bool>& is_awaited) {
    for (const int before : earlier) {
      if (before < 0 || static_cast<std::size_t>(before) >= item) {
        throw Error(ErrorCode::usage, "item " + std::to_string(item) + " comes after item " +
                                          std::to_string(before) +
                                          "\nan item can only wait for earlier items");
      }
      is_awaited[static_cast<std::size_t>(before)] = true;
    }
  }

  void check_rank(int rank, const std::string& what) const {
    if (rank < 0 || rank >= workload_.ranks) {
      throw Error(ErrorCode::usage, what + " names rank " + std::to_string(rank) +
                                        ", but there are " + std::to_string(workload_.ranks) +
                                        " ranks\nranks are numbered from 0");
    }
  }

  double factor(int rank) const { return slowness_[static_cast<std::size_t>(rank)]; }

  int actor(int rank, int stream) {
    std::vector<int>& actors = actors_[stream];
    actors.resize(static_cast<std::size_t>(workload_.ranks), -1);
    int& actor = actors[static_cast<std::size_t>(rank)];
    if (actor < 0) {
      actor = static_cast<int>(play_.rank_of_actor.size());
      play_.rank_of_actor.push_back(rank);
      play_.late_us.push_back(late_us_[static_cast<std::size_t>(rank)]);
    }
    return actor;
  }

  PlayItem make(const WorkItem& item, std::size_t index) {
    std::vector<int> ranks = item.ranks;
    if (ranks.empty()) {
      ranks.resize(static_cast<std::size_t>(workload_.ranks));
      std::iota(ranks.begin(), ranks.end(), 0);
    }
    PlayItem made;
    for (const int rank : ranks) {
      check_rank(rank, "item " + std::to_string(index));
      if (!met_.add(rank)) {
        throw Error(ErrorCode::usage, "item " + std::to_string(index) + " names rank " +
                                          std::to_string(rank) +
                                          " twice\nname each rank once in a group");
      }
      made.actors.push_back(actor(rank, item.stream));
    }
    met_.remove(ranks);
    if (item.schedule == nullptr && item.compact == nullptr) {
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const double us = item.rank_compute_us.empty() ? item.compute_us : item.rank_compute_us[i];
        made.compute_us.push_back(us * factor(ranks[i]) * jitter_factor(options_, index, 0, i));
      }
      return made;
    }
    const int size = item.compact != nullptr ? item.compact->ranks : item.schedule->ranks;
    if (static_cast<std::size_t>(size) != ranks.size()) {
      throw Error(ErrorCode::usage, "item " + std::to_string(index) + " has a schedule for " +
                                        std::to_string(size) + " ranks and a group of " +
                                        std::to_string(ranks.size()) +
                                        "\ngive the group as many ranks as the schedule");
    }
    if (is_streamed(item)) {
      const auto source = std::make_shared<StreamedBlocks>(
          item, made.actors,
          StreamedBlocks::Ranks{.of_actor = play_.rank_of_actor, .slowness = slowness_}, options_,
          paths_);
      take(source->protocol(), made);
      made.source = source;
      return made;
    }
    auto& [known, protocol] =
        known_[{item.compact.get(), item.schedule.get(), item.bytes, made.actors}];
    if (known == nullptr) {
      std::vector<PlayBlock> blocks = blocks_of(item, made.actors);
      protocol = choose_protocol(blocks);
      known = std::make_shared<const std::vector<PlayBlock>>(std::move(blocks));
      for (const PlayBlock& block : *known) {
        count_messages(static_cast<std::int64_t>(block.messages.size()), index);
      }
    }
    take(protocol, made);
    made.blocks = known;
    return made;
  }

  std::vector<PlayBlock> blocks_of(const WorkItem& item, const std::vector<int>& actors) const {
    const BlockMaker maker(play_.rank_of_actor, slowness_, options_, paths_);
    std::vector<PlayBlock> blocks;
    if (item.compact == nullptr) {
      blocks.push_back(maker.block_of(*item.schedule, item.bytes, actors));
    }
    for (std::size_t i = 0; item.compact != nullptr && i < item.compact->phases.size(); ++i) {
      blocks.push_back(maker.block_of(*item.compact, i, item.bytes, actors));
    }
    std::erase_if(blocks, [](const PlayBlock& block) {
      return block.repeats == 0 || block.messages.empty();
    });
    return blocks;
  }

  void take(const Protocol* protocol, PlayItem& item) const {
    item.protocol = protocol;
    item.launch_us = options_.launch_us + (protocol == nullptr ? 0 : protocol->start_us);
  }

  const Protocol* choose_protocol(std::vector<PlayBlock>& blocks) const {
    ProtocolChoice choice(paths_);
    for (const PlayBlock& block : blocks) {
      choice.add(block);
    }
    const Protocol* protocol = choice.choose();
    for (PlayBlock& block : blocks) {
      choice.apply(block);
    }
    return protocol;
  }

  // Decides whether to stream the blocks of an operation. If so, counts its messages.
  bool is_streamed(const WorkItem& item) {
    if (workload_.items.size() != 1 || item.compact == nullptr) {
      return false;
    }
    std::int64_t messages = 0;
    for (const CompactPhase& phase : item.compact->phases) {
      messages += phase.steps > 0 ? message_count(phase) : 0;
    }
    if (static_cast<double>(messages) <= options_.kept_messages) {
      return false;
    }
    count_messages(messages, 0);
    return true;
  }

  void count_messages(std::int64_t messages, std::size_t index) {
    messages_ += messages;
    if (messages_ > kMostMessages) {
      throw Error(ErrorCode::usage, "the different operations up to item " + std::to_string(index) +
                                        " have more than " + std::to_string(kMostMessages) +
                                        " messages\nuse fewer sizes or groups, or fewer ranks");
    }
  }

  using Key = std::tuple<const void*, const void*, double, std::vector<int>>;

  const Workload& workload_;
  const SimulationOptions& options_;
  PathTable& paths_;
  RankSet met_;
  Play play_;
  std::int64_t messages_ = 0;     // over the different operations
  std::vector<double> slowness_;  // by rank
  std::vector<double> late_us_;
  std::map<int, std::vector<int>> actors_;  // by stream and rank
  struct Known {
    std::shared_ptr<const std::vector<PlayBlock>> blocks;
    const Protocol* protocol = nullptr;
  };
  std::map<Key, Known> known_;
};

}  // namespace

Play make_play(const Workload& workload, const SimulationOptions& options, PathTable& paths) {
  return Maker(workload, options, paths).run();
}

void check_limit(double messages, const SimulationOptions& options, bool shared) {
  if (options.most_messages <= 0 || messages <= options.most_messages) {
    return;
  }
  const double per_second = shared ? 3e5 : 1e7;
  const auto duration = [](double seconds) {
    constexpr double kMinute = 60;
    constexpr double kHour = 3600;
    const auto about = [](double value, const char* unit) {
      return std::to_string(std::llround(std::ceil(value))) + unit;
    };
    return seconds < 2 * kMinute ? about(seconds, " s")
           : seconds < 2 * kHour ? about(seconds / kMinute, " minutes")
                                 : about(seconds / kHour, " hours");
  };
  const auto whole = [](double value) { return std::to_string(std::llround(value)); };
  throw Error(ErrorCode::usage,
              "playing " + whole(messages) + " messages or more one by one may take " +
                  duration(messages / per_second) + ", but the limit is " +
                  whole(options.most_messages) +
                  " messages\nraise the limit with --most-messages, or use fewer ranks or repeats");
}

double jitter_factor(const SimulationOptions& options, std::uint64_t item, std::uint64_t step,
                     std::uint64_t message) {
  if (options.jitter <= 0) {
    return 1;
  }
  // SplitMix64 (Steele, Lea, Flood, 2014), once per part of the name of the message.
  std::uint64_t state = options.seed;
  for (const std::uint64_t part : {item, step, message}) {
    state += part + 0x9e3779b97f4a7c15U;
    state = (state ^ (state >> 30U)) * 0xbf58476d1ce4e5b9U;
    state = (state ^ (state >> 27U)) * 0x94d049bb133111ebU;
    state ^= state >> 31U;
  }
  constexpr double kScale = 1.0 / 9007199254740992.0;  // 2^-53
  return 1 + options.jitter * static_cast<double>(state >> 11U) * kScale;
}

}  // namespace unisono::network_model
