#include "record/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "record/numbers.h"
#include "trace/timeline.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

std::string label_of(const trace::Timeline::Operation& operation) {
  return fmt::format("{} #{}", operation.group, operation.what->number);
}

// Adds the operations that had not ended, one line each with their ranks and the longest time that
// one of these had been in the operation, at `until_ns` (NaN: when its process ended). `world`:
// only operations of this world; negative: of all worlds.
void add_unfinished(const trace::Timeline& timeline, const std::vector<int>& culprits, int world,
                    double until_ns, Finding& result) {
  std::map<std::string, std::vector<int>> in;
  std::set<std::string> labels;
  std::set<int> waiting;
  double longest_ns = 0;
  for (const trace::Timeline::Operation& operation : timeline.operations) {
    if (operation.end_ns >= 0 || (world >= 0 && operation.world != world)) {
      continue;
    }
    labels.insert(label_of(operation));
    const std::string& purpose = operation.what->label;
    in[fmt::format("{} #{} of {}{}", operation.what->collective, operation.what->number,
                   operation.group, purpose.empty() ? "" : " (" + purpose + ")")]
        .push_back(operation.rank);
    if (std::find(culprits.begin(), culprits.end(), operation.rank) == culprits.end()) {
      const double end = std::isnan(until_ns) ? timeline.end_or_now(operation) : until_ns;
      waiting.insert(operation.rank);
      longest_ns = std::max(longest_ns, end - operation.begin_ns);
    }
  }
  for (const auto& [what, ranks] : in) {
    result.details.push_back(say("{} {} in {}", "{0} 正在 {2} 中", say_ranks(ranks),
                                 ranks.size() == 1 ? "was" : "were", what));
  }
  result.operations.assign(labels.begin(), labels.end());
  result.waiting.assign(waiting.begin(), waiting.end());
  result.waited_s = longest_ns / 1e9;
}

// Returns true for a rank that the launcher stopped with all others: an error of a rank that saw it
// end is not the cause.
bool is_after_the_stop(const trace::Timeline::Abort& abort, const JobEnd& end) {
  return abort.what.code == ErrorCode::peer_lost &&
         std::find(end.stopped.begin(), end.stopped.end(), abort.what.culprit) != end.stopped.end();
}

// Describes the end of the world in Chinese; the ranks' own texts follow unchanged.
std::string in_chinese(const trace::RecordedAbort& abort) {
  const std::string reporter =
      abort.reporter < 0 ? "" : fmt::format("（rank {} 报告）", abort.reporter);
  const std::string culprit =
      abort.culprit < 0 ? "其他 rank" : fmt::format("rank {}", abort.culprit);
  switch (abort.code) {
    case ErrorCode::timeout:
      return fmt::format("超时：等不到 {}{}", culprit, reporter);
    case ErrorCode::peer_lost:
      return fmt::format("{} 已不存在{}", culprit, reporter);
    case ErrorCode::mismatch:
      return fmt::format("各 rank 的调用不一致{}", reporter);
    case ErrorCode::aborted:
      return fmt::format("作业被中止{}", reporter);
    default:
      return fmt::format("出错（{}）{}", to_string(abort.code), reporter);
  }
}

// Returns the ranks' own reports: the first line, and the advice.
std::vector<Finding> said_by_ranks(const trace::Timeline& timeline, const JobEnd& end) {
  std::vector<Finding> findings;
  for (const trace::Timeline::Abort& abort : timeline.aborts) {
    if (is_after_the_stop(abort, end)) {
      continue;
    }
    const Error error(abort.what.code, abort.what.text);
    const std::string kind(to_string(error.code()));
    Finding said{.kind = kind, .is_abort = true};
    said.text = {fmt::format("{}: {}", kind, error.summary()),
                 fmt::format("{}：{}", in_chinese(abort.what), error.summary())};
    if (abort.what.culprit >= 0) {
      said.ranks.push_back(abort.what.culprit);
    }
    said.next = plain(std::string(error.hint()));
    add_unfinished(timeline, said.ranks, abort.world, abort.at_ns, said);
    findings.push_back(std::move(said));
  }
  return findings;
}

// ": killed by SIGKILL".
Text end_of(const JobEnd& end, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < end.ends.size() ? say(": {}", "（{}）", end.ends[at]) : Text();
}

// Finds a finding of other ranks that this rank is gone.
Finding* loss_of(int rank, std::vector<Finding>& findings) {
  const auto found = std::find_if(findings.begin(), findings.end(), [rank](const Finding& each) {
    return each.kind == to_string(ErrorCode::peer_lost) && each.ranks == std::vector<int>{rank};
  });
  return found == findings.end() ? nullptr : &*found;
}

// Adds ranks that a signal ended, and ranks without a record.
void add_lost(const trace::Timeline& timeline, const JobEnd& end, std::vector<Finding>& findings) {
  const bool is_said = !findings.empty();  // the findings already name the operations
  for (const auto& [rank, hint] : end.gone) {
    const bool by_chaos =
        std::find(end.by_chaos.begin(), end.by_chaos.end(), rank) != end.by_chaos.end();
    if (Finding* const said = by_chaos ? nullptr : loss_of(rank, findings)) {
      said->next = say("{}\n{}", "{}\n{}", hint, said->next);
      continue;
    }
    Finding gone{.kind = "gone", .ranks = {rank}};
    gone.text = say("rank {} is gone{}", "rank {} 已不存在{}", rank, end_of(end, rank));
    gone.next =
        by_chaos
            ? say("--chaos ended it: do the other ranks react as they should when a rank is gone?",
                  "这是有意的：其他 rank 在有 rank 消失时是否做了该做的事？")
            : hint;
    add_unfinished(timeline, {rank}, -1, trace::kUnknownNs, gone);
    if (is_said) {
      gone.details.clear();
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
    findings.push_back({.kind = "missing",
                        .ranks = missing,
                        .text = say("no rank left a recording", "没有 rank 留下记录"),
                        .next = say("does the program call unisono, and did it connect?",
                                    "程序是否调用了 unisono 并已连接？")});
    return;
  }
  for (const int rank : missing) {
    findings.push_back({.kind = "missing",
                        .ranks = {rank},
                        .text = say("rank {} left no recording{}", "rank {} 没有留下记录{}", rank,
                                    end_of(end, rank)),
                        .next = say("its host may be gone, or it never connected",
                                    "其主机可能已不在，或它从未连接")});
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

// Reports that the beginning of the recording is missing, because the ranks or the document had no
// room for it.
void add_dropped(const std::vector<trace::RankRecord>& records, const trace::Timeline& timeline,
                 std::size_t most_rows, std::vector<Finding>& findings) {
  if (const Missing dropped = missing_of(timeline.dropped); dropped.events != 0) {
    std::uint64_t kept = 0;
    std::uint64_t wanted = 0;
    for (const trace::RankRecord& record : records) {
      kept = std::max(kept, record.events);
      wanted = std::max(wanted, record.dropped == 0 ? 0 : record.events + record.dropped);
    }
    findings.push_back(
        {.kind = "dropped",
         .ranks = dropped.ranks,
         .text = say("the beginning is not here: {} dropped {} events, and kept the newest {}{}",
                     "缺少开头：{} 丢弃了 {} 个事件，各保留最新的 {} 个", say_ranks(dropped.ranks),
                     dropped.events, kept, dropped.ranks.size() == 1 ? "" : " each"),
         .next = say("unisono run --record-events {} keeps all of such a run",
                     "unisono run --record-events {} 可完整保留这样的运行",
                     std::bit_ceil(std::min<std::uint64_t>(wanted, 1U << 24)))});
  }
  if (const Missing left_out = missing_of(timeline.left_out); left_out.events != 0) {
    findings.push_back(
        {.kind = "dropped",
         .ranks = left_out.ranks,
         .text = say("the beginning is not here: {} events of {} are left out, of more than the "
                     "{} that a page shows",
                     "缺少开头：{1} 的 {0} 个事件被省略，一页最多显示 {2} 个", left_out.events,
                     say_ranks(left_out.ranks), most_rows),
         .next = say("record a shorter run", "请记录更短的运行")});
  }
}

// Reports groups without a name: a rank has room for a limited number of names.
void add_unrecorded(const std::vector<trace::RankRecord>& records, std::vector<Finding>& findings) {
  for (const trace::RankRecord& record : records) {
    if (record.unrecorded_groups > 0) {
      findings.push_back(
          {.kind = "dropped",
           .ranks = {record.rank},
           .text =
               say("rank {} recorded nothing of {} of its groups: there was no room for more",
                   "rank {} 有 {} 个组没有记录：空间不足", record.rank, record.unrecorded_groups),
           .next = say("record a shorter run, or one with fewer groups",
                       "请记录更短的运行，或减少组数")});
    }
  }
}

ordered_json rank_or_none(int rank) {
  return rank < 0 ? ordered_json() : ordered_json(rank);
}

// Describes the operations of the ranks in a finding when the job was stopped.
std::vector<std::string> operations_of(const trace::Timeline& timeline, const Finding& finding) {
  std::set<int> ranks(finding.ranks.begin(), finding.ranks.end());
  ranks.insert(finding.waiting.begin(), finding.waiting.end());
  std::set<std::string> labels;
  for (const trace::Timeline::Operation& operation : timeline.operations) {
    if (operation.end_ns < 0 && ranks.contains(operation.rank)) {
      labels.insert(label_of(operation));
    }
  }
  return {labels.begin(), labels.end()};
}

}  // namespace

std::vector<Finding> findings_of(const std::vector<trace::RankRecord>& records,
                                 const trace::Timeline& timeline, const JobEnd& end,
                                 std::size_t most_rows) {
  // If the launcher stopped the job, it examined the job while it still ran, so it knows more than
  // the ranks.
  std::vector<Finding> findings = end.findings;
  for (Finding& each : findings) {
    each.operations = operations_of(timeline, each);
  }
  for (Finding& said : said_by_ranks(timeline, end)) {
    findings.push_back(std::move(said));
  }
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
