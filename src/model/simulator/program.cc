#include "model/simulator/program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "model/cost.h"
#include "model/simulator/protocols.h"
#include "model/simulator/rank_set.h"
#include "model/simulator/unroll.h"
#include "unisono/error.hpp"

namespace unisono::model {
namespace {

class Maker {
 public:
  Maker(const Workload& workload, const SimulationOptions& options, PathTable& paths)
      : workload_(workload), options_(options), paths_(paths), met_(workload.ranks) {
    rank_faults_.resize(static_cast<std::size_t>(workload.ranks));
    for (const RankFault& fault : options.rank_faults) {
      check_rank(fault.rank, "a fault");
      RankFault& known = rank_faults_[static_cast<std::size_t>(fault.rank)];
      known.late_us += fault.late_us;
      known.factor *= fault.factor;
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
                                          "\nan item can only wait for earlier ones");
      }
      is_awaited[static_cast<std::size_t>(before)] = true;
    }
  }

  void check_rank(int rank, const std::string& what) const {
    if (rank < 0 || rank >= workload_.ranks) {
      throw Error(ErrorCode::usage, what + " names rank " + std::to_string(rank) +
                                        ", but there are " + std::to_string(workload_.ranks) +
                                        " ranks\nranks count from 0");
    }
  }

  double factor(int rank) const { return rank_faults_[static_cast<std::size_t>(rank)].factor; }

  int actor(int rank, int stream) {
    const auto [place, added] =
        actors_.try_emplace(std::pair(stream, rank), static_cast<int>(actors_.size()));
    if (added) {
      play_.rank_of_actor.push_back(rank);
      play_.late_us.push_back(rank_faults_[static_cast<std::size_t>(rank)].late_us);
    }
    return place->second;
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
                                          " twice\na group has each rank once");
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
                                        "\ngive it as many ranks as the schedule has");
    }
    auto& [known, start_us] =
        known_[{item.compact.get(), item.schedule.get(), item.bytes, made.actors}];
    if (known == nullptr) {
      std::vector<PlayBlock> blocks = item.compact != nullptr
                                          ? blocks_of(*item.compact, item.bytes, made.actors)
                                          : blocks_of(*item.schedule, item.bytes, made.actors);
      start_us = paths_.protocols().empty() ? 0 : choose_protocol(blocks, paths_);
      known = std::make_shared<const std::vector<PlayBlock>>(std::move(blocks));
      count_messages(*known, index);
    }
    made.launch_us = options_.launch_us + start_us;
    made.blocks = known;
    return made;
  }

  void count_messages(const std::vector<PlayBlock>& blocks, std::size_t index) {
    for (const PlayBlock& block : blocks) {
      messages_ += static_cast<std::int64_t>(block.messages.size());
    }
    if (messages_ > kMostMessages) {
      throw Error(ErrorCode::usage, "the different operations up to item " + std::to_string(index) +
                                        " have more than " + std::to_string(kMostMessages) +
                                        " messages\nuse fewer sizes or groups, or fewer ranks");
    }
  }

  void add_message(PlayBlock& block, int from, int to, double bytes, double reduced) {
    const int sender = play_.rank_of_actor[static_cast<std::size_t>(from)];
    const int receiver = play_.rank_of_actor[static_cast<std::size_t>(to)];
    PlayMessage message{.from = from, .to = to};
    MessageCost cost{.bytes = bytes,
                     .reduce_us = reduced * options_.gamma_us_per_byte * factor(receiver)};
    if (!message.is_local()) {
      message.path = paths_.find(sender, receiver);
      const Path& path = paths_.path(message.path);
      cost.overhead_us = path.overhead_us * factor(sender);
      cost.latency_us = path.latency_us;
    }
    block.add(message, cost);
  }

  std::vector<PlayBlock> blocks_of(const CompactSchedule& schedule, double bytes,
                                   const std::vector<int>& actors) {
    const double chunk = schedule.collective == Collective::barrier
                             ? 0
                             : bytes / static_cast<double>(schedule.chunks) *
                                   (schedule.collective == Collective::all_to_all
                                        ? static_cast<double>(schedule.ranks)
                                        : 1);
    std::vector<PlayBlock> blocks;
    for (std::size_t i = 0; i < schedule.phases.size(); ++i) {
      const CompactPhase& phase = schedule.phases[i];
      PlayBlock block{.phase = static_cast<int>(i), .repeats = phase.steps, .waits = phase.waits};
      block.messages.reserve(phase.messages.size());
      for (const CompactMessage& compact : phase.messages) {
        add_message(block, actors[static_cast<std::size_t>(compact.from)],
                    actors[static_cast<std::size_t>(compact.to)],
                    chunk * static_cast<double>(compact.chunks),
                    chunk * static_cast<double>(compact.reduced));
      }
      if (phase.steps > 0 && !block.messages.empty()) {
        blocks.push_back(std::move(block));
      }
    }
    return blocks;
  }

  std::vector<PlayBlock> blocks_of(const Schedule& schedule, double bytes,
                                   const std::vector<int>& actors) {
    const double chunk = chunk_bytes(schedule, bytes);
    const double segments =
        options_.segment_bytes > 0 ? std::ceil(chunk / options_.segment_bytes) : 1;
    constexpr double kMostSegments = 1e6;
    if (segments > kMostSegments) {
      throw Error(ErrorCode::usage, "a chunk has more than 1000000 segments\nuse larger segments");
    }
    PlayBlock block{.has_needs = true};
    block.first_need.push_back(0);
    for (const UnrolledMessage& flat : unroll(schedule, std::max(1, static_cast<int>(segments)))) {
      add_message(block, actors[static_cast<std::size_t>(flat.from)],
                  actors[static_cast<std::size_t>(flat.to)], chunk * flat.chunks,
                  chunk * flat.reduced);
      block.needs.insert(block.needs.end(), flat.needs.begin(), flat.needs.end());
      block.first_need.push_back(static_cast<std::uint32_t>(block.needs.size()));
    }
    std::vector<PlayBlock> blocks;
    if (!block.messages.empty()) {
      blocks.push_back(std::move(block));
    }
    return blocks;
  }

  using Key = std::tuple<const void*, const void*, double, std::vector<int>>;

  const Workload& workload_;
  const SimulationOptions& options_;
  PathTable& paths_;
  RankSet met_;
  Play play_;
  std::int64_t messages_ = 0;  // of the different operations
  std::vector<RankFault> rank_faults_;
  std::map<std::pair<int, int>, int> actors_;
  struct Known {
    std::shared_ptr<const std::vector<PlayBlock>> blocks;
    double start_us = 0;  // of the protocol that they take
  };
  std::map<Key, Known> known_;
};

}  // namespace

Play make_play(const Workload& workload, const SimulationOptions& options, PathTable& paths) {
  return Maker(workload, options, paths).run();
}

namespace {

// Each path of a play once, in order, with a message that takes it.
template <typename Visit>
void for_each_path(const Play& play, const Visit& visit) {
  std::vector<bool> seen;
  const std::vector<PlayBlock>* last = nullptr;
  for (const PlayItem& item : play.items) {
    if (item.blocks == nullptr || item.blocks.get() == last) {
      continue;
    }
    last = item.blocks.get();
    for (const PlayBlock& block : *item.blocks) {
      for (const PlayMessage& message : block.messages) {
        const auto number = static_cast<std::size_t>(message.path);
        seen.resize(std::max(seen.size(), number + 1));
        if (!message.is_local() && !seen[number]) {
          seen[number] = true;
          visit(message);
        }
      }
    }
  }
}

// Links with messages that have neither the sender nor the receiver in common.
std::vector<bool> meeting_links(const Play& play, const PathTable& paths) {
  constexpr int kNobody = -1;
  constexpr int kSeveral = -2;
  struct Users {
    int from = kNobody;
    int to = kNobody;
  };
  const auto join = [](int known, int other) {
    return known == kNobody || known == other ? other : kSeveral;
  };
  std::vector<Users> users(paths.bytes_per_us().size());
  for_each_path(play, [&](const PlayMessage& message) {
    for (const int link : paths.links(paths.path(message.path))) {
      Users& known = users[static_cast<std::size_t>(link)];
      known = {.from = join(known.from, message.from), .to = join(known.to, message.to)};
    }
  });
  std::vector<bool> meeting;
  for (const Users& known : users) {
    meeting.push_back(known.from == kSeveral && known.to == kSeveral);
  }
  return meeting;
}

}  // namespace

bool may_share_links(const Play& play, const PathTable& paths, int ports) {
  // What could flow over a link at once: each sender and each receiver has one message under way
  // for each of its ports.
  struct Load {
    double by_senders = 0;
    double by_receivers = 0;
  };
  std::vector<bool> meeting = meeting_links(play, paths);
  if (ports > 1) {
    meeting.assign(meeting.size(), true);
  }
  std::vector<Load> loads(meeting.size());
  std::unordered_map<std::uint64_t, std::pair<double, double>> known;  // by link and actor
  const auto raise = [&known](int link, int actor, double rate, bool sends, double& load) {
    const auto key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(link)) << 32U |
                     static_cast<std::uint32_t>(actor);
    auto& rates = known[key];
    double& last = sends ? rates.first : rates.second;
    load += std::max(0.0, rate - last);
    last = std::max(rate, last);
  };
  bool shared = false;
  for_each_path(play, [&](const PlayMessage& message) {
    const Path& path = paths.path(message.path);
    const std::span<const double> shares = paths.shares(path);
    for (std::size_t i = 0; i < path.count; ++i) {
      const int link = paths.links(path)[i];
      const double rate = path.bytes_per_us * ports * (shares.empty() ? 1 : shares[i]);
      const auto index = static_cast<std::size_t>(link);
      if (shared || !meeting[index]) {
        continue;
      }
      Load& load = loads[index];
      raise(link, message.from, rate, true, load.by_senders);
      raise(link, message.to, rate, false, load.by_receivers);
      constexpr double kRounding = 1 + 1e-12;
      shared =
          std::min(load.by_senders, load.by_receivers) > paths.bytes_per_us()[index] * kRounding;
    }
  });
  return shared;
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
  throw Error(
      ErrorCode::usage,
      "to play " + whole(messages) + " messages or more one by one may take " +
          duration(messages / per_second) + ", and the limit is " + whole(options.most_messages) +
          " messages\nraise the limit with --most-messages, or take fewer ranks or repeats");
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

}  // namespace unisono::model
