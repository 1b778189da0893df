// Finds the largest cost in a job that does not hang: see verdict.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/bytes_text.h"
#include "base/quantile.h"
#include "record/verdict.h"

namespace unisono::cli {
namespace {

constexpr double kSmallBytes = 65'536;
constexpr std::size_t kLeastOperations = 20;  // fewer do not show what is usual

// An operation that all members of its group have ended.
struct EndedOperation {
  const JobMeeting* meeting = nullptr;
  double moving_us = 0;   // of the rank that came last: it waits for nobody
  double waiting_us = 0;  // the mean of the ranks
  int last = -1;          // the rank that came last
  double saved_us = 0;    // how much longer the others waited for it than for the rank before it
};

std::string percent(double part) {
  return fmt::format("{:.0f} %", 100 * part);
}

class Slow {
 public:
  Slow(const JobCalls& job, const std::vector<JobMeeting>& meetings) : job_(job) {
    for (const JobMeeting& meeting : meetings) {
      add(meeting);
    }
    measure_ranks();
  }

  std::vector<Finding> findings() const {
    if (operations_.size() < kLeastOperations || span_us_ <= 0) {
      return {};
    }
    if (const auto found = experts(); !found.kind.empty()) {
      return {found};
    }
    std::vector<Finding> all = {slow_rank(), slow_link(), small_calls(), moving()};
    std::erase_if(all, [](const Finding& one) { return one.kind.empty(); });
    std::ranges::stable_sort(
        all, [](const Finding& a, const Finding& b) { return a.waited_s > b.waited_s; });
    if (all.size() > 1 && all.front().kind == "moving straggler" && all[1].kind != "small calls") {
      std::swap(all[0], all[1]);  // a finding with a known cause explains one without
    }
    all.resize(std::min<std::size_t>(all.size(), 1));
    return all;
  }

 private:
  void add(const JobMeeting& meeting) {
    const JobGroup& group = job_.group(meeting.first());
    const bool is_whole = meeting.calls.size() == group.members.size() &&
                          meeting.calls.size() > 1 &&
                          std::ranges::all_of(meeting.calls, [](const JobCall* call) {
                            return call->is_ended && !std::isnan(call->took_us);
                          });
    if (!is_whole) {
      return;
    }
    std::vector<const JobCall*> calls = meeting.calls;
    std::ranges::sort(calls, {}, &JobCall::took_us);
    EndedOperation operation{.meeting = &meeting,
                             .moving_us = std::max(0.0, calls.front()->took_us),
                             .last = calls.front()->rank,
                             .saved_us = calls[1]->took_us - calls.front()->took_us};
    for (const JobCall* call : calls) {
      operation.waiting_us += call->took_us - calls.front()->took_us;
    }
    operation.waiting_us /= static_cast<double>(calls.size());
    operations_.push_back(operation);
  }

  void measure_ranks() {
    std::vector<double> spans;
    for (const std::vector<JobCall>& calls : job_.calls) {
      Rank rank;
      double first = kUnknownUs;
      double last = kUnknownUs;
      for (const JobCall& call : calls) {
        if (call.is_ended && !std::isnan(call.took_us)) {
          first = std::fmin(first, call.end_us - call.took_us);
          last = std::fmax(last, call.end_us);
          rank.in_calls_us += call.took_us;
        }
      }
      if (!std::isnan(first)) {
        rank.is_known = true;
        rank.span_us = last - first;
        spans.push_back(rank.span_us);
      }
      ranks_.push_back(rank);
    }
    span_us_ = median(spans);
    std::vector<double> own;
    for (Rank& rank : ranks_) {
      rank.own_us = span_us_ - rank.in_calls_us;
      if (rank.is_known) {
        own.push_back(rank.own_us);
      }
    }
    own_us_ = median(own);
  }

  double share(double us) const { return us / span_us_; }

  // Finds ranks that take clearly longer between their calls than the others.
  Finding slow_rank() const {
    double most = 0;
    for (const Rank& rank : ranks_) {
      most = std::max(most, rank.is_known ? rank.own_us - own_us_ : 0);
    }
    if (share(most) < kWorthSaying) {
      return {};
    }
    std::vector<int> culprits;
    for (int rank = 0; rank < job_.ranks; ++rank) {
      const Rank& one = ranks_[static_cast<std::size_t>(rank)];
      if (one.is_known && one.own_us - own_us_ >= most / 2) {
        culprits.push_back(rank);
      }
    }
    if (4 * culprits.size() > ranks_.size() && culprits.size() > 1) {
      return {};  // the ranks do different work
    }
    const JobCall* const since = slow_since(culprits.front());
    if (since == nullptr) {
      return {};  // only occasionally, like other ranks
    }
    const bool is_host = is_late_to_issue(culprits.front(), most);
    Finding finding{.kind = is_host ? "slow host" : "slow compute", .ranks = culprits};
    finding.waited_s = most / 1e6;
    const Text who = say_ranks(culprits);
    finding.text =
        is_host
            ? say("the program on {} starts its calls late, and the others wait {} of the time",
                  "{} 上的程序发出调用较晚，其他 rank 有 {} 的时间在等待", who,
                  percent(share(most)))
            : say("{} {} {:.0f} % longer between calls than the others, which wait {} of the time",
                  "{0} 在调用之间的计算比其他 rank 长 {2:.0f} %，它们有 {3} 的时间在等待", who,
                  culprits.size() == 1 ? "computes" : "compute",
                  own_us_ > 0 ? 100 * most / own_us_ : 0.0, percent(share(most)));
    add_evidence(culprits.front(), *since, finding);
    finding.next = is_host
                       ? say("look at its data loading, garbage collection and the other processes "
                             "of its host",
                             "请查看它的数据加载、垃圾回收以及其主机上的其他进程")
                       : say("look at its device: clocks, heat, other jobs; or give it less work",
                             "请查看它的设备：频率、温度、其他作业；或减少它的工作");
    return finding;
  }

  // Returns the rank's lateness at each of its operations, compared with most members, in order.
  std::vector<std::pair<const JobCall*, double>> lateness_of(int rank) const {
    std::vector<std::pair<const JobCall*, double>> late;
    for (const EndedOperation& operation : operations_) {
      std::vector<double> others;
      const JobCall* own = nullptr;
      for (const JobCall* call : operation.meeting->calls) {
        if (call->rank == rank) {
          own = call;
        } else {
          others.push_back(call->took_us);
        }
      }
      if (own != nullptr) {
        late.emplace_back(own, median(others) - own->took_us);
      }
    }
    std::ranges::stable_sort(late, {}, [](const auto& one) { return one.first->end_us; });
    return late;
  }

  // Returns the rank's call since which it is always late; nullptr: it is late only sometimes.
  const JobCall* slow_since(int rank) const {
    constexpr std::size_t kWindows = 16;
    const auto late = lateness_of(rank);
    const std::size_t count = std::min(kWindows, late.size());
    std::vector<double> windows(count, 0);
    double mean = 0;
    for (std::size_t i = 0; i < late.size(); ++i) {
      windows[i * count / late.size()] += late[i].second;
      mean += late[i].second / static_cast<double>(count);
    }
    const auto is_late = [mean](double us) { return us >= 0.3 * mean; };
    const auto first = std::ranges::find_if(windows, is_late);
    const auto rest = static_cast<std::size_t>(windows.end() - first);
    const auto number = static_cast<std::size_t>(std::count_if(first, windows.end(), is_late));
    if (mean <= 0 || 2 * rest < count || 10 * number < 8 * rest) {
      return nullptr;
    }
    const auto window = static_cast<std::size_t>(first - windows.begin());
    const auto at = std::ranges::find_if(late, [&](const auto& one) {
      const auto place = static_cast<std::size_t>(&one - late.data());
      return place * count / late.size() == window && one.second > 0;
    });
    return at == late.end() ? late.front().first : at->first;
  }

  void add_evidence(int rank, const JobCall& since, Finding& finding) const {
    std::size_t last = 0;
    std::size_t of = 0;
    for (const EndedOperation& operation : operations_) {
      const bool is_in = std::ranges::any_of(
          operation.meeting->calls, [rank](const JobCall* call) { return call->rank == rank; });
      of += is_in ? 1 : 0;
      last += operation.last == rank ? 1 : 0;
    }
    finding.details.push_back(say("it is the last in {} of its {} calls",
                                  "它的 {1} 次调用中有 {0} 次最后到达", last, of));
    finding.details.push_back(
        say("since {}, {}", "自 {} 起，{}", job_.text_of(since), moment_text(since.end_us)));
  }

  // Returns true if the rank issues its calls late to its device. Otherwise the device itself
  // computes longer: the time from the issue of a call to its start is then longer than on other
  // members, by the additional computing time.
  bool is_late_to_issue(int rank, double longer_us) const {
    double lag_us = 0;
    bool is_known = false;
    for (const EndedOperation& operation : operations_) {
      std::vector<double> others;
      double own = kUnknownUs;
      for (const JobCall* call : operation.meeting->calls) {
        const double lag = call->end_us - call->took_us - call->issued_us;
        if (call->rank == rank) {
          own = lag;
        } else if (!std::isnan(lag)) {
          others.push_back(lag);
        }
      }
      if (!std::isnan(own) && !others.empty()) {
        is_known = true;
        lag_us += own - median(others);
      }
    }
    return is_known && lag_us < longer_us / 2;
  }

  // Finds groups whose operations take clearly longer than the same operations of other groups.
  Finding slow_link() const {
    using Class = std::tuple<std::string, int, double, std::size_t>;
    std::map<Class, std::map<int, std::vector<double>>> classes;
    for (const EndedOperation& operation : operations_) {
      const JobCall& call = operation.meeting->first();
      const JobGroup& group = job_.group(call);
      classes[{group.axis, call.what, call.bytes, group.members.size()}][call.group].push_back(
          operation.moving_us);
    }
    std::map<int, double> excess_us;  // by group
    double factor = 1;
    for (const auto& [key, groups] : classes) {
      std::vector<double> usual;
      for (const auto& [group, times] : groups) {
        usual.push_back(median(times));
      }
      const double typical = median(usual);
      for (const auto& [group, times] : groups) {
        const double own = median(times);
        if (groups.size() > 2 && own >= 1.5 * typical) {
          excess_us[group] += (own - typical) * static_cast<double>(times.size());
          factor = std::max(factor, typical > 0 ? own / typical : 1);
        }
      }
    }
    double most = 0;
    for (const auto& [group, us] : excess_us) {
      most = std::max(most, us);
    }
    if (share(most) < kWorthSaying) {
      return {};
    }
    std::erase_if(excess_us, [most](const auto& one) { return one.second < most / 4; });
    return link_of(excess_us, most, factor);
  }

  Finding link_of(const std::map<int, double>& excess_us, double most, double factor) const {
    std::map<int, std::size_t> in;  // by rank, the number of its slow groups
    std::string names;
    for (const auto& [group, us] : excess_us) {
      const JobGroup& slow = job_.groups[static_cast<std::size_t>(group)];
      names += (names.empty() ? "" : ", ") + slow.name;
      for (const int member : slow.members) {
        ++in[member];
      }
    }
    Finding finding{.kind = "slow link"};
    std::size_t groups = 0;
    for (const auto& [rank, count] : in) {
      groups = std::max(groups, count);
    }
    for (const auto& [rank, count] : in) {
      if (count == groups) {
        finding.ranks.push_back(rank);
      }
    }
    finding.waited_s = most / 1e6;
    finding.text =
        say("the links of {} are slow: {} takes {:.1f} times as long as the same calls of "
            "other groups, {} of the time",
            "{} 的链路慢：{} 的耗时是其他组相同调用的 {:.1f} 倍，占时间的 {}",
            say_ranks(finding.ranks), names, factor, percent(share(most)));
    finding.next =
        say("measure it: unisono bench or nccl-tests between these ranks' hosts; look at "
            "the counters of their network cards",
            "请测量：在这些 rank 的主机之间运行 unisono bench 或 nccl-tests；查看其网卡计数器");
    return finding;
  }

  // Finds many calls that move very little data.
  Finding small_calls() const {
    std::map<std::tuple<std::string, int>, std::pair<std::size_t, double>> kinds;
    std::size_t count = 0;
    double bytes = 0;
    for (const EndedOperation& operation : operations_) {
      const JobCall& call = operation.meeting->first();
      if (call.bytes <= kSmallBytes && job_.what(call) != "barrier") {
        auto& [calls, us] = kinds[{job_.group(call).axis, call.what}];
        const double part = static_cast<double>(operation.meeting->calls.size()) /
                            static_cast<double>(ranks_.size());
        ++calls;
        us += operation.moving_us * part;
        ++count;
        bytes += call.bytes;
      }
    }
    double us = 0;
    const std::tuple<std::string, int>* most = nullptr;
    for (const auto& [key, one] : kinds) {
      us += one.second;
      most = most == nullptr || one.second > kinds.at(*most).second ? &key : most;
    }
    if (most == nullptr || share(us) < 2 * kWorthSaying || 2 * count < operations_.size()) {
      return {};
    }
    Finding finding{.kind = "small calls"};
    finding.waited_s = us / 1e6;
    const auto& [axis, what] = *most;
    finding.operations = {axis};
    finding.text =
        say("small calls take {} of the time: {} of {} operations are of at most {}, most "
            "of them {} in {}",
            "小调用占时间的 {}：{} / {} 个操作不超过 {}，其中大多数是 {}（{}）", percent(share(us)),
            count, operations_.size(), format_bytes(static_cast<std::uint64_t>(kSmallBytes)),
            job_.names[static_cast<std::size_t>(what)], axis);
    finding.details.push_back(say("their mean size is {:.0f} bytes", "它们的平均大小为 {:.0f} 字节",
                                  bytes / static_cast<double>(count)));
    finding.next = say("put them together into one buffer (buckets, coalesced calls)",
                       "把它们合并到一个缓冲区（分桶、合并调用）");
    return finding;
  }

  // Finds waiting for a different rank each time.
  Finding moving() const {
    double waiting = 0;
    double saved = 0;
    std::map<int, double> by_rank;
    for (const EndedOperation& operation : operations_) {
      const double part =
          static_cast<double>(operation.meeting->calls.size()) / static_cast<double>(ranks_.size());
      waiting += operation.waiting_us * part;
      saved += operation.saved_us * part;
      by_rank[operation.last] += operation.saved_us * part;
    }
    double most = 0;
    std::size_t many = 0;
    for (const auto& [rank, us] : by_rank) {
      most = std::max(most, us);
      many += us >= 0.02 * saved ? 1 : 0;
    }
    if (share(waiting) < 2 * kWorthSaying) {
      return {};
    }
    Finding finding{.kind = "moving straggler"};
    finding.waited_s = waiting / 1e6;
    finding.text = say(
        "the ranks wait {} of the time for each other, each time for a different rank: {} "
        "ranks come last, and one rank causes at most {} of the waiting",
        "各 rank 有 {} 的时间在互相等待，每次等的都不同：{} 个 rank 曾最后到达，最多的一个占 {}",
        percent(share(waiting)), many, percent(saved > 0 ? most / saved : 0));
    finding.next =
        say("look for work of unequal length (sequence lengths, garbage collection, "
            "checkpoints): the same work for all ranks in each step",
            "请寻找长度不等的工作（序列长度、垃圾回收、检查点）：让每一步中各 rank 的工作相同");
    return finding;
  }

  // Finds exchanges in which some ranks receive much more than others.
  Finding experts() const {
    std::map<int, double> received;  // by rank
    std::map<int, double> usual;     // by rank: the mean of the other members of its operations
    double us = 0;
    double ratio = 0;
    double weight = 0;
    for (const EndedOperation& operation : operations_) {
      double all = 0;
      double most = 0;
      for (const JobCall* call : operation.meeting->calls) {
        all += call->received;
        most = std::max(most, call->received);
      }
      if (all <= 0) {
        continue;
      }
      const auto ranks = static_cast<double>(operation.meeting->calls.size());
      for (const JobCall* call : operation.meeting->calls) {
        received[call->rank] += call->received;
        usual[call->rank] += (all - call->received) / (ranks - 1);
      }
      us +=
          (operation.moving_us + operation.waiting_us) * ranks / static_cast<double>(ranks_.size());
      ratio += most / (all / ranks) * all;
      weight += all;
    }
    if (weight <= 0 || share(us) < kWorthSaying) {
      return {};
    }
    int fullest = -1;
    for (const auto& [rank, bytes] : received) {
      fullest = fullest < 0 || bytes > received.at(fullest) ? rank : fullest;
    }
    const double typical = usual.at(fullest);
    const double over = typical > 0 ? received.at(fullest) / typical : 0;
    if (std::max(ratio / weight, over) < 1.5) {
      return {};
    }
    Finding finding{.kind = "unbalanced experts"};
    finding.waited_s = us / 1e6;
    if (over >= 1.2) {
      finding.ranks = {fullest};
      finding.text =
          say("{} gets {:.1f} times as many bytes in all_to_all as the others of its group, "
              "which wait: these exchanges take {} of the time",
              "{} 在 all_to_all 中收到的字节数是同组其他 rank 的 {:.1f} 倍，其他 rank "
              "等待：这些交换占时间的 {}",
              say_ranks(finding.ranks), over, percent(share(us)));
    } else {
      finding.text =
          say("in each all_to_all a different rank receives the most, {:.1f} times the mean: "
              "these exchanges take {} of the time",
              "all_to_all 中收到最多的 rank 是平均的 {:.1f} 倍，每次不同：这些交换占时间的 {}",
              ratio / weight, percent(share(us)));
    }
    finding.next = say(
        "place the experts again, or replicate those with the most tokens: balance() does "
        "both (docs/guides/experts.md)",
        "请重新放置专家，或复制 token 最多的专家：balance() 两者都做（docs/guides/experts.md）");
    return finding;
  }

  struct Rank {
    bool is_known = false;
    double span_us = 0;
    double in_calls_us = 0;
    double own_us = 0;  // between its calls
  };

  const JobCalls& job_;
  std::vector<EndedOperation> operations_ = {};
  std::vector<Rank> ranks_ = {};
  double span_us_ = 0;  // the median over ranks
  double own_us_ = 0;
};

}  // namespace

std::vector<Finding> why_slow(const JobCalls& job, const std::vector<JobMeeting>& meetings) {
  return job.has_times ? Slow(job, meetings).findings() : std::vector<Finding>();
}

}  // namespace unisono::cli
