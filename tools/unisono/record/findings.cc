#include "record/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "record/numbers.h"
#include "show/show.h"
#include "trace/timeline.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

ordered_json finding(std::string_view kind, std::string_view text, std::vector<int> ranks,
                     std::string_view next) {
  return {{"kind", kind},
          {"ranks", std::move(ranks)},
          {"waiting", ordered_json::array()},
          {"waited_s", 0},
          {"text", text},
          {"details", ordered_json::array()},
          {"next", next},
          {"ops", ordered_json::array()}};
}

std::string label_of(const trace::Timeline::Operation& operation) {
  return fmt::format("{} #{}", operation.group, operation.what->number);
}

// Ranks whose latest operation had not ended, one line for each that they were in, and for how long
// the longest of them had been, at `until_ns` (NaN: until its process ended). `world`: only of this
// one; negative: of all.
void add_unfinished(const trace::Timeline& timeline, const std::vector<int>& culprits, int world,
                    double until_ns, ordered_json& result) {
  std::map<std::string, std::vector<int>> in;
  std::set<std::string> labels;
  std::set<int> waiting;
  double longest_ns = 0;
  for (const trace::Timeline::Operation& operation : timeline.operations) {
    if (operation.end_ns >= 0 || (world >= 0 && operation.world != world)) {
      continue;
    }
    labels.insert(label_of(operation));
    in[fmt::format("{} #{} of {}", operation.what->collective, operation.what->number,
                   operation.group)]
        .push_back(operation.rank);
    if (std::find(culprits.begin(), culprits.end(), operation.rank) == culprits.end()) {
      const double end = std::isnan(until_ns) ? timeline.end_or_now(operation) : until_ns;
      waiting.insert(operation.rank);
      longest_ns = std::max(longest_ns, end - operation.begin_ns);
    }
  }
  for (const auto& [what, ranks] : in) {
    result["details"].push_back(
        fmt::format("{} {} in {}", ranks_text(ranks), ranks.size() == 1 ? "was" : "were", what));
  }
  result["ops"] = labels;
  result["waiting"] = waiting;
  result["waited_s"] = plain_number(longest_ns / 1e9);
}

// A rank that was stopped with all the others: that one of them saw it go is no cause of anything.
bool is_after_the_stop(const trace::Timeline::Abort& abort, const JobEnd& end) {
  return abort.what.code == ErrorCode::peer_lost &&
         std::find(end.stopped.begin(), end.stopped.end(), abort.what.culprit) != end.stopped.end();
}

// What the ranks said, in their words: the first line, and what to do.
ordered_json aborts_text(const trace::Timeline& timeline, const JobEnd& end) {
  ordered_json findings = ordered_json::array();
  for (const trace::Timeline::Abort& abort : timeline.aborts) {
    if (is_after_the_stop(abort, end)) {
      continue;
    }
    const Error error(abort.what.code, abort.what.text);
    std::vector<int> culprits;
    if (abort.what.culprit >= 0) {
      culprits.push_back(abort.what.culprit);
    }
    auto said = finding(to_string(error.code()),
                        fmt::format("{}: {}", to_string(error.code()), error.summary()), culprits,
                        error.hint());
    add_unfinished(timeline, culprits, abort.world, abort.at_ns, said);
    said["abort"] = true;
    findings.push_back(std::move(said));
  }
  return findings;
}

std::string end_of(const JobEnd& end, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < end.ends.size() ? ": " + end.ends[at] : "";
}

// Where the others said already that this rank is gone.
ordered_json* loss_of(int rank, ordered_json& findings) {
  for (ordered_json& each : findings) {
    if (each["kind"] == "peer_lost" && each["ranks"] == std::vector<int>{rank}) {
      return &each;
    }
  }
  return nullptr;
}

// Adds ranks that ended by a signal, and those that left nothing.
void add_lost(const trace::Timeline& timeline, const JobEnd& end, ordered_json& findings) {
  const bool is_said = !findings.empty();  // who was in what
  for (const auto& [rank, hint] : end.gone) {
    const bool by_chaos =
        std::find(end.by_chaos.begin(), end.by_chaos.end(), rank) != end.by_chaos.end();
    if (ordered_json* const said = by_chaos ? nullptr : loss_of(rank, findings)) {
      (*said)["next"] = hint + "\n" + (*said)["next"].get<std::string>();
      continue;
    }
    auto gone = finding(
        "gone", fmt::format("rank {} is gone{}", rank, end_of(end, rank)), {rank},
        by_chaos ? "it was meant to be: do the others do what they should when a rank is gone?"
                 : hint);
    add_unfinished(timeline, {rank}, -1, trace::kUnknownNs, gone);
    if (is_said) {
      gone["details"] = ordered_json::array();
    }
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
void add_dropped(const std::vector<trace::RankRecord>& records, const trace::Timeline& timeline,
                 std::size_t most_rows, ordered_json& findings) {
  if (const Missing dropped = missing_of(timeline.dropped); dropped.events != 0) {
    std::uint64_t kept = 0;
    std::uint64_t wanted = 0;
    for (const trace::RankRecord& record : records) {
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
void add_unrecorded(const std::vector<trace::RankRecord>& records, ordered_json& findings) {
  for (const trace::RankRecord& record : records) {
    if (record.unrecorded_groups > 0) {
      findings.push_back(finding(
          "dropped",
          fmt::format("rank {} recorded nothing of {} of its groups: there was no room for more",
                      record.rank, record.unrecorded_groups),
          {record.rank}, "record a shorter run, or one with fewer groups"));
    }
  }
}

ordered_json rank_or_none(int rank) {
  return rank < 0 ? ordered_json() : ordered_json(rank);
}

// What those that a finding names were in when the job was stopped.
ordered_json operations_of(const trace::Timeline& timeline, const ordered_json& finding) {
  std::set<int> ranks;
  for (const char* key : {"ranks", "waiting"}) {
    ranks.insert(finding.at(key).begin(), finding.at(key).end());
  }
  std::set<std::string> labels;
  for (const trace::Timeline::Operation& operation : timeline.operations) {
    if (operation.end_ns < 0 && ranks.contains(operation.rank)) {
      labels.insert(label_of(operation));
    }
  }
  return labels;
}

void append(ordered_json& findings, const ordered_json& more) {
  findings.insert(findings.end(), more.begin(), more.end());
}

}  // namespace

ordered_json findings_of(const std::vector<trace::RankRecord>& records,
                         const trace::Timeline& timeline, const JobEnd& end,
                         std::size_t most_rows) {
  // The launcher that stopped the job looked at it while it still ran, and so knows more than its
  // ranks.
  ordered_json findings = end.findings;
  for (ordered_json& each : findings) {
    each["ops"] = operations_of(timeline, each);
  }
  append(findings, aborts_text(timeline, end));
  add_lost(timeline, end, findings);
  add_dropped(records, timeline, most_rows, findings);
  add_unrecorded(records, findings);
  return findings;
}

ordered_json aborts_of(const trace::Timeline& timeline) {
  ordered_json aborts = ordered_json::array();
  for (const trace::Timeline::Abort& abort : timeline.aborts) {
    aborts.push_back({{"world", abort.name},
                      {"code", to_string(abort.what.code)},
                      {"rank", rank_or_none(abort.what.culprit)},
                      {"raised_by", rank_or_none(abort.what.reporter)},
                      {"at_us", std::isnan(abort.at_ns) ? ordered_json() : us_of_ns(abort.at_ns)},
                      {"text", Error(abort.what.code, abort.what.text).what()}});
  }
  return aborts;
}

}  // namespace unisono::cli
