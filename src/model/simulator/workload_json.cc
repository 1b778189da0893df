#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/words.h"
#include "model/simulator/rank_set.h"
#include "model/simulator/workload.h"
#include "topology/topology.h"
#include "unisono/error.hpp"

namespace unisono::model {
namespace {

constexpr std::int64_t kMostItems = 1'000'000;
constexpr double kMostUs = 1e12;
constexpr double kMostBytes = 1e18;
constexpr std::int64_t kMostStreams = 64;

class Reader {
 public:
  Reader(const JsonNode& document, bool written_out, const ScheduleLoader& load,
         const CountsLoader& load_counts)
      : document_(document), written_out_(written_out), load_(load), load_counts_(load_counts) {}

  Workload read() {
    document_.allow_only({"format", "ranks", "groups", "items"});
    const JsonNode format = document_.at("format");
    if (format.text() != kWorkloadFormat) {
      format.fail("unknown format " + in_quotes(format.text()) + ", this reads " +
                  std::string(kWorkloadFormat));
    }
    workload_.ranks = static_cast<int>(document_.at("ranks").whole(1, kMostTopologyRanks));
    met_ = RankSet(workload_.ranks);
    if (const auto groups = document_.find("groups")) {
      const std::vector<std::string>& names = groups->keys();
      for (std::size_t i = 0; i < names.size(); ++i) {
        groups_.emplace(names[i], ranks_of(groups->member(i)));
      }
    }
    const JsonNode items = document_.at("items");
    for (std::size_t i = 0; i < items.size(); ++i) {
      add(items.item(i));
    }
    return std::move(workload_);
  }

 private:
  std::vector<int> ranks_of(const JsonNode& list) {
    std::vector<int> ranks;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const JsonNode entry = list.item(i);
      const auto rank = static_cast<int>(entry.whole(0, workload_.ranks - 1));
      if (!met_.add(rank)) {
        entry.fail("rank " + std::to_string(rank) + " comes twice");
      }
      ranks.push_back(rank);
    }
    met_.remove(ranks);
    if (ranks.empty()) {
      list.fail("a group needs a rank");
    }
    return ranks;
  }

  std::vector<int> group_of(const JsonNode& item) {
    const auto group = item.find("group");
    if (!group) {
      std::vector<int> all(static_cast<std::size_t>(workload_.ranks));
      std::iota(all.begin(), all.end(), 0);
      return all;
    }
    if (!group->is(JsonValue::Kind::text)) {
      return ranks_of(*group);
    }
    const auto found = groups_.find(group->text());
    if (found == groups_.end()) {
      group->fail("there is no group " + in_quotes(group->text()));
    }
    return found->second;
  }

  void add(const JsonNode& node) {
    node.allow_only({"name", "compute_us", "collective", "algorithm", "schedule", "bytes", "counts",
                     "element_bytes", "root", "group", "stream", "after", "repeat"});
    const std::vector<int> ranks = group_of(node);
    WorkItem item = node.find("compute_us") ? compute(node)
                    : node.find("schedule") ? own_operation(node, ranks)
                                            : operation_of(node, ranks);
    item.ranks = ranks;
    if (const auto after = node.find("after")) {
      item.after = items_named(*after);
    }
    if (const auto stream = node.find("stream")) {
      item.stream = static_cast<int>(stream->whole(0, kMostStreams - 1));
    }
    std::int64_t repeat = 1;
    if (const auto times = node.find("repeat")) {
      repeat = times->whole(1, kMostItems);
    }
    const auto ranks_in_all = static_cast<std::int64_t>(ranks.size()) * repeat;
    constexpr std::int64_t kMostPlaces = 50'000'000;
    places_ += ranks_in_all;
    if (static_cast<std::int64_t>(workload_.items.size()) + repeat > kMostItems ||
        places_ > kMostPlaces) {
      node.fail("more than 1000000 items, or 50000000 ranks in all of them");
    }
    if (const auto name = node.find("name")) {
      item.name = name->text();
      remember(item,
               static_cast<int>(workload_.items.size() + static_cast<std::size_t>(repeat) - 1));
    }
    workload_.items.insert(workload_.items.end(), static_cast<std::size_t>(repeat), item);
  }

  // The ranks of a stream take its items in order: the last one of those that are alike ends last.
  void remember(const WorkItem& item, int index) {
    std::vector<int>& named = named_[item.name];
    for (int& earlier : named) {
      const WorkItem& other = workload_.items[static_cast<std::size_t>(earlier)];
      if (other.stream == item.stream && other.ranks == item.ranks) {
        earlier = index;
        return;
      }
    }
    named.push_back(index);
  }

  // One name, or a list of them: all items of these.
  std::vector<int> items_named(const JsonNode& after) const {
    std::vector<int> items;
    const auto add_named = [&](const JsonNode& name) {
      const auto found = named_.find(name.text());
      if (found == named_.end()) {
        name.fail("no item before this one has the name " + in_quotes(name.text()));
      }
      items.insert(items.end(), found->second.begin(), found->second.end());
    };
    if (!after.is(JsonValue::Kind::array)) {
      add_named(after);
      return items;
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
      add_named(after.item(i));
    }
    return items;
  }

  static WorkItem compute(const JsonNode& node) {
    for (const char* key :
         {"collective", "algorithm", "schedule", "bytes", "counts", "element_bytes", "root"}) {
      if (const auto other = node.find(key)) {
        other->fail("a compute step has none");
      }
    }
    return {.name = "compute", .compute_us = node.at("compute_us").number(0, kMostUs)};
  }

  static std::int64_t moves_of(const WorkItem& item) {
    std::size_t moves = item.schedule != nullptr ? item.schedule->moves.size() : 0;
    if (item.compact != nullptr) {
      for (const CompactPhase& phase : item.compact->phases) {
        moves += phase.messages.size();
      }
    }
    return static_cast<std::int64_t>(moves);
  }

  void count_moves(const WorkItem& item, const JsonNode& name) {
    constexpr std::int64_t kMostMoves = 50'000'000;
    moves_ += moves_of(item);
    if (moves_ > kMostMoves) {
      name.fail("the different operations up to this one have more than 50000000 moves");
    }
  }

  WorkItem own_operation(const JsonNode& node, const std::vector<int>& ranks) {
    for (const char* key : {"collective", "algorithm", "root"}) {
      if (const auto other = node.find(key)) {
        other->fail("the schedule says it already");
      }
    }
    for (const char* key : {"counts", "element_bytes"}) {
      if (const auto other = node.find(key)) {
        other->fail("a schedule carries its own: unisono show --counts FILE --json writes it");
      }
    }
    const JsonNode name = node.at("schedule");
    auto known = own_.find(name.text());
    if (known == own_.end()) {
      if (!load_) {
        name.fail("files of schedules are not read here");
      }
      Schedule schedule = load_(name.text());
      WorkItem item = schedule.counts.empty() ? WorkItem{} : exchange(schedule);
      if (item.schedule == nullptr) {
        item.schedule = std::make_shared<const Schedule>(std::move(schedule));
      }
      item.name = name.text();
      count_moves(item, name);
      known = own_.emplace(name.text(), std::move(item)).first;
    }
    WorkItem item = known->second;
    if (static_cast<std::size_t>(item.schedule->ranks) != ranks.size()) {
      name.fail("a schedule for " + std::to_string(item.schedule->ranks) +
                " ranks, in a group of " + std::to_string(ranks.size()));
    }
    if (item.schedule->counts.empty()) {
      item.bytes = node.at("bytes").number(0, kMostBytes);
    } else if (const auto bytes = node.find("bytes")) {
      bytes->fail("the counts of the schedule say it already");
    }
    return item;
  }

  // Rows, or the name of a file of them.
  Counts counts_of(const JsonNode& node, std::size_t ranks) const {
    constexpr auto kMostCount = std::int64_t{1} << 53;  // of what a double keeps
    const JsonNode rows = node.at("counts");
    Counts counts;
    if (rows.is(JsonValue::Kind::text)) {
      if (!load_counts_) {
        rows.fail("files of counts are not read here; write the rows");
      }
      counts = load_counts_(rows.text());
    } else {
      for (std::size_t from = 0; from < rows.size(); ++from) {
        const JsonNode row = rows.item(from);
        counts.send.emplace_back();
        for (std::size_t to = 0; to < row.size(); ++to) {
          counts.send.back().push_back(row.item(to).whole(0, kMostCount));
        }
      }
    }
    if (const auto element = node.find("element_bytes")) {
      counts.element_bytes = element->whole(1, kMostElementBytes);
    }
    const CountProblem problem = check_counts(counts);
    if (!problem.message.empty()) {
      rows.fail(problem.message);
    }
    if (counts.send.size() != ranks) {
      rows.fail("counts of " + std::to_string(counts.ranks()) + " ranks, in a group of " +
                std::to_string(ranks));
    }
    return counts;
  }

  // Equal blocks under the name of all_to_all_v would be a silent guess.
  void check_sizes(const JsonNode& node, Collective collective) const {
    const bool counted = collective == Collective::all_to_all_v;
    for (const char* key : {"counts", "element_bytes"}) {
      const auto other = node.find(key);
      if (other && !counted) {
        other->fail(std::string(to_string(collective)) +
                    " has bytes; only all_to_all_v has counts");
      }
    }
    const auto bytes = node.find("bytes");
    if (bytes && counted) {
      bytes->fail("all_to_all_v has counts; all_to_all is the one with equal blocks");
    }
  }

  WorkItem operation_of(const JsonNode& node, const std::vector<int>& ranks) {
    const JsonNode collective = node.at("collective");
    const JsonNode name = node.at("algorithm");
    const auto parsed = parse_collective(collective.text());
    if (!parsed) {
      collective.fail(in_quotes(collective.text()) + " is no collective");
    }
    const Algorithm* algorithm = find_algorithm(*parsed, name.text());
    if (algorithm == nullptr) {
      name.fail(std::string(to_string(*parsed)) + " has no algorithm " + in_quotes(name.text()));
    }
    check_sizes(node, *parsed);
    int root = 0;
    if (const auto given = node.find("root")) {
      root = static_cast<int>(given->whole(0, static_cast<std::int64_t>(ranks.size()) - 1));
    }
    const bool counted = *parsed == Collective::all_to_all_v;
    Counts counts = counted ? counts_of(node, ranks.size()) : Counts{};
    const double bytes = counted ? 0 : node.at("bytes").number(0, kMostBytes);
    const auto key = std::tuple(*parsed, name.text(), ranks.size(), root);
    auto known = known_.find(key);
    if (known == known_.end()) {
      try {
        const Shape shape{.ranks = static_cast<int>(ranks.size()),
                          .root = root,
                          .parameters = parse_parameters(*algorithm, name.text())};
        known =
            known_.emplace(key, operation(*algorithm, shape, bytes, written_out_ || counted)).first;
      } catch (const Error& error) {
        name.fail(std::string(error.summary()));
      }
      count_moves(known->second, name);
    }
    if (counted) {
      Schedule schedule = *known->second.schedule;
      schedule.counts = std::move(counts);
      WorkItem item = exchange(std::move(schedule));
      count_moves(item, name);
      return item;
    }
    WorkItem item = known->second;
    item.bytes = bytes;
    return item;
  }

  const JsonNode& document_;
  bool written_out_;
  const ScheduleLoader& load_;
  const CountsLoader& load_counts_;
  Workload workload_;
  RankSet met_{0};
  std::map<std::string, std::vector<int>> groups_;
  std::map<std::tuple<Collective, std::string, std::size_t, int>, WorkItem> known_;
  std::map<std::string, WorkItem> own_;            // by the name of the schedule
  std::map<std::string, std::vector<int>> named_;  // the items that `after` a name waits for
  std::int64_t places_ = 0;
  std::int64_t moves_ = 0;  // of the different schedules
};

}  // namespace

Parsed<Workload> parse_workload_json(std::string_view text, bool written_out,
                                     const ScheduleLoader& load, const CountsLoader& load_counts) {
  return parse_json_as<Workload>(text, [&](const JsonNode& document) {
    return Reader(document, written_out, load, load_counts).read();
  });
}

}  // namespace unisono::model
