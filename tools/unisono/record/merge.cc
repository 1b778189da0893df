#include "record/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "record/numbers.h"
#include "schedule/schedule.h"
#include "trace/timeline.h"
#include "unisono/types.hpp"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;
using trace::recording::EventKind;

// Returns the time of an end; null if it did not come.
ordered_json end_us(double ns) {
  return ns < 0 ? ordered_json() : us_of_ns(ns);
}

std::string_view kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::send:
      return "send";
    case EventKind::receive:
      return "receive";
    case EventKind::reduce:
      return "reduce";
    default:
      return "copy";
  }
}

ordered_json columns(std::initializer_list<const char*> names) {
  ordered_json group = ordered_json::object();
  for (const char* name : names) {
    group[name] = ordered_json::array();
  }
  return group;
}

// Adds the column of labels if a row has one.
template <typename Rows>
void add_labels(ordered_json& columns, const Rows& rows) {
  if (std::all_of(rows.begin(), rows.end(),
                  [](const auto& row) { return row.what->label.empty(); })) {
    return;
  }
  ordered_json& labels = columns["label"] = ordered_json::array();
  for (const auto& row : rows) {
    labels.push_back(row.what->label.empty() ? ordered_json() : ordered_json(row.what->label));
  }
}

ordered_json operations_of(const trace::Timeline& timeline) {
  ordered_json ops = columns({"rank", "number", "group", "collective", "algorithm", "root", "bytes",
                              "dtype", "op", "in_place", "start_us", "end_us", "waiting_us"});
  for (const trace::Timeline::Operation& operation : timeline.operations) {
    const trace::RecordedOperation& what = *operation.what;
    const double waiting = timeline.end_or_now(operation) - operation.begin_ns - operation.busy_ns;
    ops["rank"].push_back(operation.rank);
    ops["number"].push_back(what.number);
    ops["group"].push_back(operation.group);
    ops["collective"].push_back(what.collective);
    ops["algorithm"].push_back(what.algorithm);
    ops["root"].push_back(what.root < 0 ? ordered_json() : ordered_json(what.root));
    ops["bytes"].push_back(what.bytes);
    const int dtype = trace::recording::dtype_of(what.terms);
    const int op = trace::recording::op_of(what.terms);
    const bool known = dtype >= 0 && dtype < kDtypeCount && op < kReduceOpCount;
    const auto collective = parse_collective(what.collective);
    const bool combines = known && collective && reduces(*collective);
    ops["dtype"].push_back(known ? ordered_json(to_string(static_cast<Dtype>(dtype)))
                                 : ordered_json());
    ops["op"].push_back(combines ? ordered_json(to_string(static_cast<ReduceOp>(op)))
                                 : ordered_json());
    ops["in_place"].push_back(known && trace::recording::is_in_place(what.terms));
    ops["start_us"].push_back(us_of_ns(operation.begin_ns));
    ops["end_us"].push_back(end_us(operation.end_ns));
    ops["waiting_us"].push_back(us_of_ns(std::max(0.0, waiting)));
  }
  add_labels(ops, timeline.operations);
  return ops;
}

ordered_json messages_of(const trace::Timeline& timeline) {
  ordered_json messages = columns({"from", "to", "step", "bytes", "start_us", "end_us", "op"});
  for (const trace::Timeline::Message& message : timeline.messages) {
    messages["from"].push_back(message.from);
    messages["to"].push_back(message.to);
    messages["step"].push_back(message.step);
    messages["bytes"].push_back(message.bytes);
    messages["start_us"].push_back(us_of_ns(message.begin_ns));
    messages["end_us"].push_back(us_of_ns(message.end_ns));
    messages["op"].push_back(message.label);
  }
  return messages;
}

// A rank was idle from the end of one pass to the beginning of the next.
ordered_json events_of(const trace::Timeline& timeline) {
  ordered_json events =
      columns({"op", "kind", "step", "peer", "bytes", "start_us", "end_us", "waited_us"});
  std::map<std::size_t, std::vector<const trace::Timeline::Pass*>> by_operation;
  for (const trace::Timeline::Pass& pass : timeline.passes) {
    by_operation[pass.operation].push_back(&pass);
  }
  for (auto& [operation, passes] : by_operation) {
    std::stable_sort(passes.begin(), passes.end(),
                     [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
    double idle_since = timeline.operations[operation].begin_ns;
    for (const trace::Timeline::Pass* pass : passes) {
      const trace::RecordedPass& what = *pass->what;
      events["op"].push_back(operation);
      events["kind"].push_back(kind_name(what.kind));
      events["step"].push_back(what.step);
      events["peer"].push_back(what.peer < 0 ? ordered_json() : ordered_json(what.peer));
      events["bytes"].push_back(what.bytes);
      events["start_us"].push_back(us_of_ns(pass->begin_ns));
      events["end_us"].push_back(us_of_ns(pass->end_ns));
      events["waited_us"].push_back(us_of_ns(std::max(0.0, pass->begin_ns - idle_since)));
      idle_since = std::max(idle_since, pass->end_ns);
    }
  }
  return events;
}

ordered_json transfers_of(const trace::Timeline& timeline) {
  ordered_json transfers =
      columns({"rank", "group", "kind", "peer", "tag", "bytes", "start_us", "end_us"});
  for (const trace::Timeline::Transfer& transfer : timeline.transfers) {
    const trace::RecordedTransfer& what = *transfer.what;
    transfers["rank"].push_back(transfer.rank);
    transfers["group"].push_back(transfer.group);
    transfers["kind"].push_back(what.send ? "send" : "receive");
    transfers["peer"].push_back(what.peer < 0 ? ordered_json() : ordered_json(what.peer));
    transfers["tag"].push_back(what.tag);
    transfers["bytes"].push_back(what.bytes);
    transfers["start_us"].push_back(us_of_ns(transfer.begin_ns));
    transfers["end_us"].push_back(end_us(transfer.end_ns));
  }
  add_labels(transfers, timeline.transfers);
  return transfers;
}

// "all_reduce/ring", if all operations are of one kind.
std::string name_of(const trace::Timeline& timeline) {
  std::set<std::string> names;
  for (const trace::Timeline::Operation& operation : timeline.operations) {
    names.insert(fmt::format("{}/{}", operation.what->collective, operation.what->algorithm));
  }
  return names.size() == 1 ? *names.begin() : "";
}

}  // namespace

ordered_json merge_records(const std::vector<trace::RankRecord>& records, const JobEnd& end,
                           std::size_t most_rows) {
  int ranks = end.ranks;
  for (const trace::RankRecord& record : records) {
    ranks = end.ranks == 0 ? std::max(ranks, record.size) : ranks;
  }
  const trace::Timeline timeline =
      trace::make_timeline(records, std::max(1, ranks), most_rows, end.processes);
  ordered_json document = {{"format", "unisono.trace/1"},
                           {"name", name_of(timeline)},
                           {"ranks", timeline.ranks},
                           {"clock_uncertainty_us", ordered_json::array()},
                           {"dropped_events", ordered_json::array()}};
  for (std::size_t rank = 0; rank < timeline.dropped.size(); ++rank) {
    document["dropped_events"].push_back(timeline.dropped[rank] + timeline.left_out[rank]);
    if (timeline.knows_ends) {
      document["until_us"].push_back(us_of_ns(timeline.until_ns[rank]));
    }
  }
  for (const double uncertainty : timeline.uncertainty_ns) {
    document["clock_uncertainty_us"].push_back(
        std::isfinite(uncertainty) ? us_of_ns(std::ceil(uncertainty)) : ordered_json());
  }
  document["groups"] = columns({"name", "ranks"});
  for (const trace::Timeline::Group& group : timeline.groups) {
    document["groups"]["name"].push_back(group.name);
    document["groups"]["ranks"].push_back(group.members);
  }
  document["ops"] = operations_of(timeline);
  document["messages"] = messages_of(timeline);
  document["events"] = events_of(timeline);
  document["transfers"] = transfers_of(timeline);
  document["findings"] = ordered_json::array();
  for (const Finding& finding : findings_of(records, timeline, end, most_rows)) {
    ordered_json row = finding_json(finding);
    row["ops"] = finding.operations;
    if (finding.is_abort) {
      row["abort"] = true;
    }
    document["findings"].push_back(std::move(row));
  }
  document["aborts"] = aborts_of(timeline);
  if (!end.ended.empty()) {
    document["ended"] = end.ended.english;
    document["ended_chinese"] = end.ended.chinese;
  }
  return document;
}

}  // namespace unisono::cli
