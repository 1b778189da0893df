#include "record/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "record/numbers.h"
#include "record/timeline.h"
#include "show/show.h"

namespace unisono::cli {
namespace {

using engine::recording::Kind;
using nlohmann::ordered_json;

// An end that did not come.
ordered_json end_us(double ns) {
  return ns < 0 ? ordered_json() : us_of_ns(ns);
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", rank_list(ranks));
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::send:
      return "send";
    case Kind::receive:
      return "receive";
    case Kind::reduce:
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

ordered_json operations_of(const Timeline& timeline) {
  ordered_json ops = columns({"rank", "number", "group", "collective", "algorithm", "bytes",
                              "start_us", "end_us", "waiting_us"});
  for (const Timeline::Operation& operation : timeline.operations) {
    const RecordedOperation& what = *operation.what;
    const double waiting = timeline.end_or_now(operation) - operation.begin_ns - operation.busy_ns;
    ops["rank"].push_back(operation.rank);
    ops["number"].push_back(what.number);
    ops["group"].push_back(operation.group);
    ops["collective"].push_back(what.collective);
    ops["algorithm"].push_back(what.algorithm);
    ops["bytes"].push_back(what.bytes);
    ops["start_us"].push_back(us_of_ns(operation.begin_ns));
    ops["end_us"].push_back(end_us(operation.end_ns));
    ops["waiting_us"].push_back(us_of_ns(std::max(0.0, waiting)));
  }
  return ops;
}

ordered_json messages_of(const Timeline& timeline) {
  ordered_json messages = columns({"from", "to", "step", "bytes", "start_us", "end_us", "op"});
  for (const Timeline::Message& message : timeline.messages) {
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

// Before a pass begins its rank had nothing to do since the one before it ended.
ordered_json events_of(const Timeline& timeline) {
  ordered_json events =
      columns({"op", "kind", "step", "peer", "bytes", "start_us", "end_us", "waited_us"});
  std::map<std::size_t, std::vector<const Timeline::Pass*>> by_operation;
  for (const Timeline::Pass& pass : timeline.passes) {
    by_operation[pass.operation].push_back(&pass);
  }
  for (auto& [operation, passes] : by_operation) {
    std::stable_sort(passes.begin(), passes.end(),
                     [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
    double idle_since = timeline.operations[operation].begin_ns;
    for (const Timeline::Pass* pass : passes) {
      const RecordedPass& what = *pass->what;
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

ordered_json transfers_of(const Timeline& timeline) {
  ordered_json transfers =
      columns({"rank", "group", "kind", "peer", "tag", "bytes", "start_us", "end_us"});
  for (const Timeline::Transfer& transfer : timeline.transfers) {
    const RecordedTransfer& what = *transfer.what;
    transfers["rank"].push_back(transfer.rank);
    transfers["group"].push_back(transfer.group);
    transfers["kind"].push_back(what.send ? "send" : "receive");
    transfers["peer"].push_back(what.peer < 0 ? ordered_json() : ordered_json(what.peer));
    transfers["tag"].push_back(what.tag);
    transfers["bytes"].push_back(what.bytes);
    transfers["start_us"].push_back(us_of_ns(transfer.begin_ns));
    transfers["end_us"].push_back(end_us(transfer.end_ns));
  }
  return transfers;
}

ordered_json finding(std::string_view kind, const std::string& text, std::vector<int> ranks,
                     std::string_view next) {
  return {{"kind", kind},
          {"ranks", std::move(ranks)},
          {"waiting", ordered_json::array()},
          {"waited_s", 0},
          {"text", text},
          {"details", ordered_json::array()},
          {"next", next}};
}

// Ranks whose latest operation had not ended, one line for each that they were in, and for how long
// the longest of them had been.
void add_unfinished(const Timeline& timeline, const std::vector<int>& culprits,
                    ordered_json& result) {
  std::map<std::string, std::vector<int>> in;
  std::set<int> waiting;
  double longest_ns = 0;
  for (const Timeline::Operation& operation : timeline.operations) {
    const bool culprit =
        std::find(culprits.begin(), culprits.end(), operation.rank) != culprits.end();
    if (operation.end_ns < 0) {
      in[fmt::format("{} #{} of {}", operation.what->collective, operation.what->number,
                     operation.group)]
          .push_back(operation.rank);
      if (!culprit) {
        waiting.insert(operation.rank);
        longest_ns = std::max(longest_ns, timeline.end_or_now(operation) - operation.begin_ns);
      }
    }
  }
  for (const auto& [what, ranks] : in) {
    result["details"].push_back(
        fmt::format("{} {} in {}", ranks_text(ranks), ranks.size() == 1 ? "was" : "were", what));
  }
  result["waiting"] = waiting;
  result["waited_s"] = plain_number(longest_ns / 1e9);
}

std::string end_of(const JobEnd& end, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < end.ends.size() ? ": " + end.ends[at] : "";
}

// Of ranks that ended by a signal, and of those that left nothing.
void add_lost(const Timeline& timeline, const JobEnd& end, ordered_json& findings) {
  for (const int rank : end.gone) {
    const bool by_chaos =
        std::find(end.by_chaos.begin(), end.by_chaos.end(), rank) != end.by_chaos.end();
    auto gone = finding(
        "gone", fmt::format("rank {} is gone{}", rank, end_of(end, rank)), {rank},
        by_chaos ? "it was meant to be: do the others do what they should when a rank is gone?"
                 : "out of memory? try: dmesg | tail");
    add_unfinished(timeline, {rank}, gone);
    findings.push_back(std::move(gone));
  }
  std::vector<int> missing;
  for (int rank = 0; rank < timeline.ranks; ++rank) {
    if (std::isinf(timeline.uncertainty_ns[static_cast<std::size_t>(rank)])) {
      missing.push_back(rank);
    }
  }
  if (static_cast<int>(missing.size()) == timeline.ranks) {
    findings.push_back(finding("missing", "no rank left a recording", missing,
                               "does the program call unisono, and did it connect?"));
  } else {
    for (const int rank : missing) {
      findings.push_back(
          finding("missing", fmt::format("rank {} left no recording{}", rank, end_of(end, rank)),
                  {rank}, "its host may be gone, or it never connected"));
    }
  }
}

struct Missing {
  std::vector<int> ranks = {};
  std::uint64_t events = 0;
};

Missing missing_of(const std::vector<std::uint64_t>& by_rank) {
  Missing result;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank] != 0) {
      result.ranks.push_back(static_cast<int>(rank));
      result.events += by_rank[rank];
    }
  }
  return result;
}

// The beginning of the recording is not here: because ranks have no room for it, or the document.
void add_dropped(const std::vector<RankRecord>& records, const Timeline& timeline,
                 std::size_t most_rows, ordered_json& findings) {
  if (const Missing dropped = missing_of(timeline.dropped); dropped.events != 0) {
    std::uint64_t kept = 0;
    std::uint64_t wanted = 0;
    for (const RankRecord& record : records) {
      kept = std::max(kept, record.events);
      wanted = std::max(wanted, record.dropped == 0 ? 0 : record.events + record.dropped);
    }
    findings.push_back(
        finding("dropped",
                fmt::format("the beginning is not here: {} dropped {} events, and kept the newest "
                            "{}",
                            ranks_text(dropped.ranks), dropped.events,
                            dropped.ranks.size() == 1 ? fmt::to_string(kept)
                                                      : fmt::format("{} each", kept)),
                dropped.ranks,
                fmt::format("unisono run --record-events {} keeps all of such a run",
                            std::bit_ceil(std::min<std::uint64_t>(wanted, 1U << 24)))));
  }
  if (const Missing left_out = missing_of(timeline.left_out); left_out.events != 0) {
    findings.push_back(
        finding("dropped",
                fmt::format("the beginning is not here: {} events of {} are left out, of more than "
                            "the {} that a page shows",
                            left_out.events, ranks_text(left_out.ranks), most_rows),
                left_out.ranks, "record a shorter run"));
  }
}

// A rank has room for the names of so many groups.
void add_unrecorded(const std::vector<RankRecord>& records, ordered_json& findings) {
  for (const RankRecord& record : records) {
    if (record.unrecorded_groups > 0) {
      findings.push_back(finding(
          "dropped",
          fmt::format("rank {} recorded nothing of {} of its groups: there was no room for more",
                      record.rank, record.unrecorded_groups),
          {record.rank}, "record a shorter run, or one with fewer groups"));
    }
  }
}

// "all_reduce/ring", if all operations are of one kind.
std::string name_of(const Timeline& timeline) {
  std::set<std::string> names;
  for (const Timeline::Operation& operation : timeline.operations) {
    names.insert(fmt::format("{}/{}", operation.what->collective, operation.what->algorithm));
  }
  return names.size() == 1 ? *names.begin() : "";
}

}  // namespace

ordered_json merge_records(const std::vector<RankRecord>& records, const JobEnd& end,
                           std::size_t most_rows) {
  int ranks = end.ranks;
  for (const RankRecord& record : records) {
    ranks = end.ranks == 0 ? std::max(ranks, record.size) : ranks;
  }
  const Timeline timeline = make_timeline(records, std::max(1, ranks), most_rows, end.processes);
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
    // Of a rank without a record there are no times that could be off.
    const double known = std::isinf(uncertainty) ? 0 : std::ceil(uncertainty);
    document["clock_uncertainty_us"].push_back(std::isnan(known) ? ordered_json()
                                                                 : us_of_ns(known));
  }
  document["ops"] = operations_of(timeline);
  document["messages"] = messages_of(timeline);
  document["events"] = events_of(timeline);
  document["transfers"] = transfers_of(timeline);
  document["findings"] = end.findings;
  add_lost(timeline, end, document["findings"]);
  add_dropped(records, timeline, most_rows, document["findings"]);
  add_unrecorded(records, document["findings"]);
  if (!end.ended.empty()) {
    document["ended"] = end.ended;
  }
  return document;
}

}  // namespace unisono::cli
