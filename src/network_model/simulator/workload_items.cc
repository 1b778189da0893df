#include "network_model/simulator/workload_items.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/words.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

constexpr double kMostUs = 1e12;
constexpr double kMostBytes = 1e18;
constexpr double kMostWork = 1e30;                  // per compute step
constexpr auto kMostCount = std::int64_t{1} << 53;  // the largest exact integer of a double

std::int64_t moves_of(const WorkItem& item) {
  auto moves =
      static_cast<std::int64_t>(item.schedule != nullptr ? item.schedule->moves.size() : 0);
  if (item.compact != nullptr) {
    for (const CompactPhase& phase : item.compact->phases) {
      moves += message_count(phase);
    }
  }
  return moves;
}

// Rejects `bytes` for all_to_all_v: taking them for equal blocks would be a silent guess.
void check_sizes(const JsonNode& node, Collective collective) {
  const bool counted = collective == Collective::all_to_all_v;
  for (const char* key : {"counts", "element_bytes"}) {
    const auto other = node.find(key);
    if (other && !counted) {
      other->fail(std::string(to_string(collective)) + " has bytes; only all_to_all_v has counts");
    }
  }
  const auto bytes = node.find("bytes");
  if (bytes && counted) {
    bytes->fail("all_to_all_v needs counts; use all_to_all for equal blocks");
  }
}

// Reads one number for all ranks, or a list with one number for each.
template <typename Value>
std::vector<Value> each_of(const JsonNode& node, std::size_t count, const char* owners,
                           const std::function<Value(const JsonNode&)>& read) {
  if (!node.is(JsonValue::Kind::array)) {
    return std::vector<Value>(count, read(node));
  }
  if (node.size() != count) {
    node.fail(std::to_string(node.size()) + " in a list for " + std::to_string(count) + " " +
              owners);
  }
  std::vector<Value> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(read(node.item(i)));
  }
  return values;
}

void refuse(const JsonNode& node, std::initializer_list<const char*> keys, const char* why) {
  for (const char* key : keys) {
    if (const auto other = node.find(key)) {
      other->fail(why);
    }
  }
}

std::optional<DeviceRates> device_of(const JsonNode& document, const WorkloadSources& sources) {
  const auto device = document.find("device");
  if (!device) {
    return std::nullopt;
  }
  if (device->is(JsonValue::Kind::text)) {
    const std::optional<DeviceRates> rates =
        sources.device ? sources.device(device->text()) : std::nullopt;
    if (!rates) {
      device->fail("there is no device " + in_quotes(device->text()) +
                   "; give its flops_per_s and memory_bytes_per_s instead");
    }
    return rates;
  }
  device->allow_only({"flops_per_s", "memory_bytes_per_s"});
  return DeviceRates{.flops_per_s = device->at("flops_per_s").number(1, kMostWork),
                     .memory_bytes_per_s = device->at("memory_bytes_per_s").number(1, kMostWork)};
}

}  // namespace

WorkloadItems::WorkloadItems(const JsonNode& document, int ranks, bool written_out,
                             const WorkloadSources& sources)
    : ranks_(ranks),
      written_out_(written_out),
      sources_(sources),
      groups_(document, ranks),
      device_(device_of(document, sources)) {}

std::vector<WorkItem> WorkloadItems::read(const JsonNode& node) {
  if (node.find("from") || node.find("to")) {
    return {transfer(node)};
  }
  const Family family = groups_.of(node);
  if (node.find("compute_us") || node.find("flops") || node.find("memory_bytes")) {
    return {compute(node, family)};
  }
  operations_ += static_cast<std::int64_t>(family.size());
  if (operations_ > kMostWorkItems) {
    node.fail(kTooManyWorkItems);
  }
  std::vector<WorkItem> items;
  for (const std::vector<int>& group : family) {
    if (!items.empty() && items.back().ranks.size() == group.size()) {
      items.push_back(WorkItem(items.back()));  // reads and builds the item once, counts included
    } else {
      items.push_back(node.find("schedule") ? own_operation(node, group.size())
                                            : operation_of(node, group.size()));
    }
    items.back().ranks = group;
  }
  return items;
}

WorkItem WorkloadItems::compute(const JsonNode& node, const Family& family) const {
  refuse(node, {"collective", "algorithm", "schedule", "bytes", "counts", "element_bytes", "root"},
         "not allowed in a compute step");
  WorkItem item{.name = "compute"};
  for (const std::vector<int>& group : family) {
    item.ranks.insert(item.ranks.end(), group.begin(), group.end());
  }
  item.rank_compute_us = work_us(node, item.ranks.size());
  const auto [least, most] = std::ranges::minmax(item.rank_compute_us);
  if (least == most) {
    item.compute_us = most;
    item.rank_compute_us.clear();
  }
  return item;
}

// Returns the longer of the computation at the device's rate and the memory traffic at its memory's
// rate.
std::vector<double> WorkloadItems::work_us(const JsonNode& node, std::size_t ranks) const {
  const auto read = [](double most) {
    return [most](const JsonNode& value) { return value.number(0, most); };
  };
  if (const auto us = node.find("compute_us")) {
    refuse(node, {"flops", "memory_bytes"}, "not allowed beside compute_us");
    return each_of<double>(*us, ranks, "ranks", read(kMostUs));
  }
  std::vector<double> longest(ranks);
  for (const auto& [key, per_s] : {std::pair("flops", &DeviceRates::flops_per_s),
                                   std::pair("memory_bytes", &DeviceRates::memory_bytes_per_s)}) {
    const auto work = node.find(key);
    if (!work) {
      continue;
    }
    if (!device_) {
      work->fail("the workload names no device");
    }
    const std::vector<double> amounts = each_of<double>(*work, ranks, "ranks", read(kMostWork));
    for (std::size_t i = 0; i < ranks; ++i) {
      longest[i] = std::max(longest[i], 1e6 * amounts[i] / ((*device_).*per_s));
      if (longest[i] > kMostUs) {
        work->fail("that would take more than 1e12 us");
      }
    }
  }
  return longest;
}

WorkItem WorkloadItems::transfer(const JsonNode& node) const {
  refuse(node,
         {"collective", "algorithm", "schedule", "counts", "element_bytes", "root", "group",
          "compute_us", "flops", "memory_bytes"},
         "not allowed in messages from ranks to other ranks");
  const JsonNode from = node.at("from");
  const JsonNode to = node.at("to");
  const JsonNode bytes = node.at("bytes");
  const std::size_t count = from.is(JsonValue::Kind::array) ? from.size()
                            : to.is(JsonValue::Kind::array) ? to.size()
                                                            : 1;
  if (count == 0) {
    from.fail("messages need a sender");
  }
  const auto rank = [this](const JsonNode& value) {
    return static_cast<int>(value.whole(0, ranks_ - 1));
  };
  const auto size = [](const JsonNode& value) { return value.whole(0, kMostCount); };
  const std::vector<int> senders = each_of<int>(from, count, "messages", rank);
  const std::vector<int> receivers = each_of<int>(to, count, "messages", rank);
  const std::vector<std::int64_t> sizes = each_of<std::int64_t>(bytes, count, "messages", size);
  std::vector<Transfer> messages;
  for (std::size_t i = 0; i < count; ++i) {
    if (senders[i] == receivers[i]) {
      node.fail("rank " + std::to_string(senders[i]) + " sends to itself");
    }
    messages.push_back(
        {.from = senders[i], .to = receivers[i], .bytes = static_cast<double>(sizes[i])});
  }
  return transfers(messages);
}

void WorkloadItems::count_moves(const WorkItem& item, const JsonNode& name) {
  constexpr std::int64_t kMostMoves = 50'000'000;
  moves_ += moves_of(item);
  if (moves_ > kMostMoves) {
    name.fail("the different operations up to this one have more than 50000000 moves");
  }
}

WorkItem WorkloadItems::own_operation(const JsonNode& node, std::size_t ranks) {
  for (const char* key : {"collective", "algorithm", "root"}) {
    if (const auto other = node.find(key)) {
      other->fail("not allowed beside a schedule, which defines it");
    }
  }
  for (const char* key : {"counts", "element_bytes"}) {
    if (const auto other = node.find(key)) {
      other->fail(
          "not allowed beside a schedule, which contains them: write it with unisono show --counts "
          "FILE --json");
    }
  }
  const JsonNode name = node.at("schedule");
  auto known = own_.find(name.text());
  if (known == own_.end()) {
    if (!sources_.schedule) {
      name.fail("schedule files cannot be read here");
    }
    Schedule schedule = sources_.schedule(name.text());
    WorkItem item = schedule.counts.empty() ? WorkItem{} : exchange(schedule);
    if (item.schedule == nullptr) {
      item.schedule = std::make_shared<const Schedule>(std::move(schedule));
    }
    item.name = name.text();
    count_moves(item, name);
    known = own_.emplace(name.text(), std::move(item)).first;
  }
  WorkItem item = known->second;
  if (static_cast<std::size_t>(item.schedule->ranks) != ranks) {
    name.fail("the schedule is for " + std::to_string(item.schedule->ranks) +
              " ranks, but the group has " + std::to_string(ranks));
  }
  if (item.schedule->counts.empty()) {
    item.bytes = node.at("bytes").number(0, kMostBytes);
  } else if (const auto bytes = node.find("bytes")) {
    bytes->fail("not allowed beside a schedule with counts, which define it");
  }
  return item;
}

// Reads rows, or the name of a file with rows.
Counts WorkloadItems::counts_of(const JsonNode& node, std::size_t ranks) const {
  const JsonNode rows = node.at("counts");
  Counts counts;
  if (rows.is(JsonValue::Kind::text)) {
    if (!sources_.counts) {
      rows.fail("count files cannot be read here; write the rows");
    }
    counts = sources_.counts(rows.text());
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
    rows.fail("the counts are for " + std::to_string(counts.ranks()) +
              " ranks, but the group has " + std::to_string(ranks));
  }
  return counts;
}

WorkItem WorkloadItems::operation_of(const JsonNode& node, std::size_t ranks) {
  const JsonNode collective = node.at("collective");
  const JsonNode name = node.at("algorithm");
  const auto parsed = parse_collective(collective.text());
  if (!parsed) {
    collective.fail(in_quotes(collective.text()) + " is not a collective");
  }
  const Algorithm* algorithm = find_algorithm(*parsed, name.text());
  if (algorithm == nullptr) {
    name.fail(std::string(to_string(*parsed)) + " has no algorithm " + in_quotes(name.text()));
  }
  check_sizes(node, *parsed);
  int root = 0;
  if (const auto given = node.find("root")) {
    root = static_cast<int>(given->whole(0, static_cast<std::int64_t>(ranks) - 1));
  }
  const bool counted = *parsed == Collective::all_to_all_v;
  Counts counts = counted ? counts_of(node, ranks) : Counts{};
  const double bytes = counted ? 0 : node.at("bytes").number(0, kMostBytes);
  const auto key = std::tuple(*parsed, name.text(), ranks, root);
  auto known = known_.find(key);
  if (known == known_.end()) {
    try {
      const Shape shape{.ranks = static_cast<int>(ranks),
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

}  // namespace unisono::network_model
