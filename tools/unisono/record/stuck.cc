// Finds why a job hangs: see verdict.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "record/verdict.h"

namespace unisono::cli {
namespace {

// Calls match if their collectives are equal, and also their sizes if all ranks contribute equally.
using Kind = std::tuple<int, int, double>;

Kind kind_of(const JobCalls& job, const JobCall& call) {
  const std::string what = job.what(call);
  const bool has_own_size = what == "all_to_all" || what == "gather" || what == "scatter" ||
                            what == "barrier" || call.received > 0;
  return {job.group(call).is_message ? 0 : call.what, call.dtype, has_own_size ? 0.0 : call.bytes};
}

std::map<Kind, std::vector<int>> kinds_in(const JobCalls& job, const JobMeeting& meeting) {
  std::map<Kind, std::vector<int>> kinds;
  for (const JobCall* call : meeting.calls) {
    kinds[kind_of(job, *call)].push_back(call->rank);
  }
  return kinds;
}

// The current operation of each rank, and the ranks that it waits for.
class Waits {
 public:
  Waits(const JobCalls& job, const std::vector<JobMeeting>& meetings)
      : job_(job), in_(job.calls.size()) {
    for (const JobMeeting& meeting : meetings) {
      meeting_of_.emplace(std::tuple(meeting.first().group, meeting.first().number), &meeting);
    }
    if (job.has_times) {
      find_pending();
    } else {
      play();
    }
    for (std::size_t rank = 0; rank < in_.size(); ++rank) {
      for (const JobCall* call : in_[rank]) {
        inside_[{call->group, call->number}].insert(static_cast<int>(rank));
      }
    }
  }

  bool is_any() const { return !inside_.empty(); }
  const std::vector<const JobCall*>& in(int rank) const {
    return in_[static_cast<std::size_t>(rank)];
  }
  const JobMeeting& meeting(const JobCall& call) const {
    return *meeting_of_.at({call.group, call.number});
  }
  // Returns the operations in which ranks wait, with these ranks.
  const std::map<std::tuple<int, int>, std::set<int>>& inside() const { return inside_; }

  // Members of the call's group that are not in it, and have not ended it.
  std::vector<int> absent(const JobCall& call) const {
    const std::set<int>& present = inside_.at({call.group, call.number});
    std::set<int> ended;
    for (const JobCall* other : meeting(call).calls) {
      if (has_passed(*other)) {
        ended.insert(other->rank);
      }
    }
    std::vector<int> ranks;
    for (const int member : job_.group(call).members) {
      if (member >= 0 && member < job_.ranks && !present.contains(member) &&
          !ended.contains(member) && !may_be_lost(member, call)) {
        ranks.push_back(member);
      }
    }
    return ranks;
  }

 private:
  bool has_passed(const JobCall& call) const {
    return job_.has_times ? call.is_ended : passed_.contains(&call);
  }

  // Returns true if the call may be among the first calls of the rank, which were lost.
  bool may_be_lost(int rank, const JobCall& call) const {
    const auto at = static_cast<std::size_t>(rank);
    return job_.has_lost[at] && std::ranges::none_of(job_.calls[at], [&call](const JobCall& own) {
             return own.group == call.group && own.number < call.number;
           });
  }

  void find_pending() {
    for (std::size_t rank = 0; rank < in_.size(); ++rank) {
      const JobCall* first = nullptr;
      std::set<int> groups;
      for (const JobCall& call : job_.calls[rank]) {
        if (call.is_ended) {
          continue;
        }
        first = first == nullptr ? &call : first;
        if (call.is_begun && groups.insert(call.group).second) {
          in_[rank].push_back(&call);
        }
      }
      if (in_[rank].empty() && first != nullptr) {
        in_[rank].push_back(first);
      }
    }
  }

  // Replays calls without times: an operation completes when it is the next call of all its members
  // and they agree.
  void play() {
    std::vector<std::size_t> next(in_.size(), 0);
    std::map<const JobMeeting*, std::size_t> here;
    std::vector<std::size_t> going;
    for (std::size_t rank = 0; rank < in_.size(); ++rank) {
      going.push_back(rank);
    }
    while (!going.empty()) {
      const std::size_t rank = going.back();
      going.pop_back();
      if (next[rank] == job_.calls[rank].size()) {
        continue;
      }
      const JobMeeting& meeting = this->meeting(job_.calls[rank][next[rank]]);
      const bool is_whole = ++here[&meeting] == job_.group(meeting.first()).members.size();
      if (is_whole && kinds_in(job_, meeting).size() == 1) {
        for (const JobCall* call : meeting.calls) {
          passed_.insert(call);
          ++next[static_cast<std::size_t>(call->rank)];
          going.push_back(static_cast<std::size_t>(call->rank));
        }
      }
    }
    for (std::size_t rank = 0; rank < in_.size(); ++rank) {
      if (next[rank] < job_.calls[rank].size()) {
        in_[rank].push_back(&job_.calls[rank][next[rank]]);
      }
    }
  }

  const JobCalls& job_;
  std::vector<std::vector<const JobCall*>> in_;  // by rank
  std::map<std::tuple<int, int>, const JobMeeting*> meeting_of_;
  std::map<std::tuple<int, int>, std::set<int>> inside_;
  std::set<const JobCall*> passed_;
};

double since_of(const JobCall& call) {
  return std::isnan(call.issued_us) ? call.start_us : call.issued_us;
}

// Returns the latest time in any rank's record.
double latest_of(const JobCalls& job) {
  double latest = kUnknownUs;
  for (const std::vector<JobCall>& calls : job.calls) {
    for (const JobCall& call : calls) {
      latest = std::fmax(latest, std::fmax(call.end_us, std::fmax(call.start_us, call.issued_us)));
    }
  }
  return latest;
}

class Stuck {
 public:
  Stuck(const JobCalls& job, const std::vector<JobMeeting>& meetings)
      : job_(job), waits_(job, meetings) {
    std::map<std::string, int> known;
    for (const JobGroup& group : job.groups) {
      axes_.push_back(known.emplace(group.axis, static_cast<int>(known.size())).first->second);
    }
  }

  std::vector<Finding> findings() {
    if (!waits_.is_any()) {
      return {};
    }
    find_edges();
    std::vector<Finding> found = disagreements();
    if (found.empty()) {
      found = ends_of_chains();
    }
    if (found.empty()) {
      found = circles();
    }
    if (found.empty()) {
      found = together();
    }
    return found;
  }

 private:
  void find_edges() {
    waits_for_.resize(job_.calls.size());
    waited_by_.resize(job_.calls.size());
    std::map<std::tuple<int, int>, std::vector<int>> absent;
    for (int rank = 0; rank < job_.ranks; ++rank) {
      for (const JobCall* call : waits_.in(rank)) {
        const auto [known, is_new] = absent.try_emplace({call->group, call->number});
        if (is_new) {
          known->second = waits_.absent(*call);
        }
        for (const int other : known->second) {
          waits_for_[static_cast<std::size_t>(rank)].push_back(other);
          waited_by_[static_cast<std::size_t>(other)].push_back(rank);
        }
      }
    }
  }

  std::set<int> reach(int from, const std::vector<std::vector<int>>& edges) const {
    std::set<int> seen;
    std::vector<int> next = {from};
    while (!next.empty()) {
      const int rank = next.back();
      next.pop_back();
      for (const int other : edges[static_cast<std::size_t>(rank)]) {
        if (seen.insert(other).second) {
          next.push_back(other);
        }
      }
    }
    return seen;
  }

  std::vector<int> waiting_for(const std::vector<int>& culprits) const {
    std::set<int> all;
    for (const int rank : culprits) {
      all.merge(reach(rank, waited_by_));
    }
    for (const int rank : culprits) {
      all.erase(rank);
    }
    return {all.begin(), all.end()};
  }

  // Returns the first operation in which others wait for the rank.
  const JobCall* missed_by(int rank) const {
    const JobCall* missed = nullptr;
    for (const int other : waited_by_[static_cast<std::size_t>(rank)]) {
      for (const JobCall* call : waits_.in(other)) {
        const std::vector<int>& members = job_.group(*call).members;
        if (std::ranges::find(members, rank) != members.end() &&
            (missed == nullptr || since_of(*call) < since_of(*missed))) {
          missed = call;
        }
      }
    }
    return missed;
  }

  void set_times(Finding& finding) const {
    double since = kUnknownUs;
    for (const int rank : finding.waiting) {
      for (const JobCall* call : waits_.in(rank)) {
        since = std::fmin(since, since_of(*call));
      }
    }
    if (job_.has_times && !std::isnan(since)) {
      finding.waited_s = std::max(0.0, latest_of(job_) - since) / 1e6;
      finding.details.push_back(
          say("the first of them since {}", "其中最早的始于{}", moment_text(since)));
    }
  }

  Text last_call(int rank) const {
    const auto& calls = job_.calls[static_cast<std::size_t>(rank)];
    if (calls.empty()) {
      return say("rank {} has called nothing", "rank {} 没有任何调用", rank);
    }
    const JobCall& last = calls.back();
    return say("the last call of rank {} was {}{}{}", "rank {} 的最后一次调用是 {}{}{}", rank,
               job_.text_of(last), place_text(job_, last),
               job_.has_times && last.is_ended && !std::isnan(last.end_us)
                   ? say(", ended {}", "，结束于{}", moment_text(last.end_us))
                   : Text());
  }

  // Finds ranks that call different operations at the same place.
  std::vector<Finding> disagreements() const {
    const JobMeeting* first = nullptr;
    for (const auto& [place, ranks] : waits_.inside()) {
      const JobCall* call = nullptr;
      for (const JobCall* one : waits_.in(*ranks.begin())) {
        call = std::tuple(one->group, one->number) == place ? one : call;
      }
      const JobMeeting& meeting = waits_.meeting(*call);
      const bool is_earlier = first == nullptr || since_of(*call) < since_of(first->first());
      if (is_earlier && kinds_in(job_, meeting).size() > 1) {
        first = &meeting;
      }
    }
    return first == nullptr ? std::vector<Finding>() : disagreement(*first);
  }

  std::vector<Finding> disagreement(const JobMeeting& meeting) const {
    const std::map<Kind, std::vector<int>> kinds = kinds_in(job_, meeting);
    std::size_t most = 0;
    for (const auto& [kind, ranks] : kinds) {
      most = std::max(most, ranks.size());
    }
    const bool has_majority = std::ranges::count_if(kinds, [most](const auto& one) {
                                return one.second.size() == most;
                              }) == 1;
    std::set<int> whats;
    Finding finding;
    for (const JobCall* call : meeting.calls) {
      whats.insert(std::get<0>(kind_of(job_, *call)));
    }
    std::set<int> waiting;
    for (const auto& [kind, ranks] : kinds) {
      const JobCall& call = **std::ranges::find_if(
          meeting.calls, [&r = ranks](const JobCall* one) { return one->rank == r.front(); });
      finding.details.push_back(say("{} called {}, {:.0f} bytes{}", "{} 调用了 {}，{:.0f} 字节{}",
                                    say_ranks(ranks), job_.what(call), call.bytes,
                                    place_text(job_, call)));
      auto& list = has_majority && ranks.size() == most ? finding.waiting : finding.ranks;
      list.insert(list.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(finding.ranks);
    const bool is_call = whats.size() > 1;
    finding.kind = is_call ? "other call" : "other sizes";
    const Text who = say_ranks(finding.ranks);
    const std::string where =
        fmt::format("#{} of {}", meeting.first().shown, job_.group(meeting.first()).name);
    if (!has_majority) {
      finding.text =
          is_call ? say("{} are in different calls at {}", "{} 在 {} 处调用不同", who, where)
                  : say("{} give different sizes at {}", "{} 在 {} 处给出不同大小", who, where);
    } else if (is_call) {
      finding.text = say("{} made another call than the other ranks at {}",
                         "{} 在 {} 处的调用与其他 rank 不同", who, where);
    } else {
      finding.text = say("{} gave another size or type than the other ranks at {}",
                         "{} 在 {} 处给出的大小或类型与其他 rank 不同", who, where);
    }
    finding.operations = {
        fmt::format("{} #{}", job_.group(meeting.first()).name, meeting.first().number)};
    finding.next = is_call ? say("compare the branches that lead to this call on both",
                                 "比较两者走到此调用的分支")
                           : say("compare the tensors' shapes there; a last batch may be smaller",
                                 "比较那里的张量形状；最后一个批次可能更小");
    set_times(finding);
    return {finding};
  }

  // Finds ranks that others wait for, and that wait for nobody.
  std::vector<Finding> ends_of_chains() const {
    std::map<int, std::size_t> ends;  // rank -> number of ranks that wait for it
    for (int rank = 0; rank < job_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      if (waits_.in(rank).empty() && !waited_by_[at].empty()) {
        ends[rank] = reach(rank, waited_by_).size();
      }
    }
    std::size_t most = 0;
    for (const auto& [rank, waiting] : ends) {
      most = std::max(most, waiting);
    }
    std::vector<int> gone;
    std::vector<int> late;
    for (const auto& [rank, waiting] : ends) {
      const bool is_here = job_.has_record[static_cast<std::size_t>(rank)];
      if (2 * waiting >= most) {
        (is_here ? late : gone).push_back(rank);
      }
    }
    if (gone.empty() && late.empty()) {
      return {};
    }
    return {end_of_chain(gone.empty() ? late : gone, !gone.empty())};
  }

  Finding end_of_chain(const std::vector<int>& culprits, bool is_gone) const {
    const JobCall* missed = nullptr;
    for (const int rank : culprits) {
      const JobCall* const own = missed_by(rank);
      if (own != nullptr && (missed == nullptr || since_of(*own) < since_of(*missed))) {
        missed = own;
      }
    }
    Finding finding{.kind = is_gone ? "gone" : "never called",
                    .ranks = culprits,
                    .waiting = waiting_for(culprits)};
    const Text who = say_ranks(culprits);
    const std::string what = job_.text_of(*missed) + place_text(job_, *missed);
    finding.text =
        is_gone ? say("{} left no record, and {} in {}", "{} 没有留下记录，{}，在 {} 中", who,
                      say("{} wait for {}", "{} 在等{}", say_ranks(finding.waiting),
                          culprits.size() == 1 ? say("it", "它") : say("them", "它们")),
                      what)
                : say("{} never called {}, and {} wait for {}", "{0} 从未调用 {1}，{2} 在等{3}",
                      who, what, say_ranks(finding.waiting),
                      culprits.size() == 1 ? say("it", "它") : say("them", "它们"));
    finding.operations = {fmt::format("{} #{}", job_.group(*missed).name, missed->number)};
    if (!is_gone) {
      finding.details.push_back(last_call(culprits.front()));
    }
    set_times(finding);
    finding.next =
        is_gone
            ? say("its process or host died, or its file was not given: look at its last output "
                  "and its host's log",
                  "其进程或主机已死，或没有给出它的文件：请查看其最后输出和主机日志")
            : say("see where it is: py-spy dump --pid PID there, or its last output",
                  "查看它在哪里：在该处 py-spy dump --pid PID，或其最后输出");
    return finding;
  }

  // Returns the ranks that wait for each other; if there are several such sets, the set for which
  // most ranks wait.
  std::set<int> circle() const {
    std::set<int> best;
    std::size_t most = 0;
    std::vector<int> walk(waits_for_.size(), 0);  // the walk that visited the rank, from 1
    for (int start = 0; start < job_.ranks; ++start) {
      int rank = start;
      while (walk[static_cast<std::size_t>(rank)] == 0 &&
             !waits_for_[static_cast<std::size_t>(rank)].empty()) {
        walk[static_cast<std::size_t>(rank)] = start + 1;
        rank = waits_for_[static_cast<std::size_t>(rank)].front();
      }
      if (walk[static_cast<std::size_t>(rank)] != start + 1) {
        continue;
      }
      const std::set<int> forth = reach(rank, waits_for_);
      const std::set<int> back = reach(rank, waited_by_);
      if (back.size() > most) {
        most = back.size();
        best.clear();
        std::ranges::set_intersection(forth, back, std::inserter(best, best.end()));
      }
    }
    return best;
  }

  // The axis of a rank's next call, and the call before it.
  struct Step {
    std::tuple<int, int, int> from = {-1, -1, -1};  // axis, collective, number
    int to = -1;
  };
  Step step_of(int rank, const JobCall& into) const {
    const auto& calls = job_.calls[static_cast<std::size_t>(rank)];
    const auto at = static_cast<std::size_t>(&into - calls.data());
    Step step{.to = axes_[static_cast<std::size_t>(into.group)]};
    if (at > 0) {
      const JobCall& before = calls[at - 1];
      step.from = {axes_[static_cast<std::size_t>(before.group)], before.what, before.number};
    }
    return step;
  }

  std::vector<Finding> circles() const {
    const std::set<int> ranks = circle();
    if (ranks.empty()) {
      return {};
    }
    // The next calls of all ranks after the same call.
    std::map<decltype(Step::from), std::map<int, int>> ways;
    for (const int rank : ranks) {
      ways[step_of(rank, *waits_.in(rank).front()).from];
    }
    for (const std::vector<JobCall>& calls : job_.calls) {
      for (const JobCall& call : calls) {
        const Step step = step_of(call.rank, call);
        if (const auto known = ways.find(step.from); known != ways.end()) {
          ++known->second[step.to];
        }
      }
    }
    std::vector<int> deviating;
    for (const int rank : ranks) {
      const Step step = step_of(rank, *waits_.in(rank).front());
      const std::map<int, int>& to = ways.at(step.from);
      int all = 0;
      for (const auto& [axis, count] : to) {
        all += count;
      }
      if (4 * to.at(step.to) <= all) {
        deviating.push_back(rank);
      }
    }
    // All of these ranks called one operation, and all others would continue if these ranks had
    // called the same as the others.
    std::set<std::tuple<int, int>> into;
    for (const int rank : deviating) {
      into.emplace(waits_.in(rank).front()->group, waits_.in(rank).front()->number);
    }
    const bool is_order = into.size() == 1 && deviating.size() < ranks.size() &&
                          std::ranges::all_of(
                              ranks,
                              [&](int rank) {
                                const std::vector<int>& others =
                                    waits_for_[static_cast<std::size_t>(rank)];
                                return std::ranges::count(deviating, rank) > 0 ||
                                       std::ranges::all_of(others, [&](int other) {
                                         return std::ranges::count(deviating, other) > 0;
                                       });
                              });
    return {is_order ? other_order(deviating) : deadlock({ranks.begin(), ranks.end()})};
  }

  Text where_each_waits(int rank) const {
    const JobCall& call = *waits_.in(rank).front();
    return say("rank {} waits in {}{} for {}", "rank {} 在 {}{} 中等 {}", rank, job_.text_of(call),
               place_text(job_, call), say_ranks(waits_.absent(call)));
  }

  Finding other_order(const std::vector<int>& culprits) const {
    Finding finding{.kind = "other order", .ranks = culprits, .waiting = waiting_for(culprits)};
    const JobCall& own = *waits_.in(culprits.front()).front();
    const JobCall* const theirs = missed_by(culprits.front());
    finding.text =
        say("{} went into {} first, where the other ranks go into {}: they wait for each other",
            "{} 先进入 {}，而其他 rank 先进入 {}：它们互相等待", say_ranks(culprits),
            job_.text_of(own), theirs == nullptr ? "another call" : job_.text_of(*theirs));
    finding.operations = {fmt::format("{} #{}", job_.group(own).name, own.number)};
    finding.details.push_back(where_each_waits(culprits.front()));
    if (theirs != nullptr) {
      finding.details.push_back(where_each_waits(theirs->rank));
    }
    set_times(finding);
    finding.next = say("make the calls of all groups in one order on all ranks",
                       "在所有 rank 上以同一顺序进行各组的调用");
    return finding;
  }

  Finding deadlock(const std::vector<int>& ranks) const {
    constexpr std::size_t kMostShown = 8;
    Finding finding{.kind = "deadlock", .ranks = ranks, .waiting = waiting_for(ranks)};
    finding.text = say("{} wait for each other in different groups", "{} 在不同的组中互相等待",
                       say_ranks(ranks));
    for (std::size_t i = 0; i < std::min(ranks.size(), kMostShown); ++i) {
      finding.details.push_back(where_each_waits(ranks[i]));
    }
    finding.next = say("make the calls of all groups in one order on all ranks",
                       "在所有 rank 上以同一顺序进行各组的调用");
    return finding;
  }

  // Finds operations that all members have begun, and that have not ended.
  std::vector<Finding> together() const {
    const JobCall* first = nullptr;
    for (int rank = 0; rank < job_.ranks; ++rank) {
      for (const JobCall* call : waits_.in(rank)) {
        if (first == nullptr || since_of(*call) < since_of(*first)) {
          first = call;
        }
      }
    }
    const std::set<int>& inside = waits_.inside().at({first->group, first->number});
    Finding finding{.kind = "not ended", .waiting = {inside.begin(), inside.end()}};
    finding.text = say("{}{} did not end: {} {} in it", "{0}{1} 没有结束：{2} 在其中",
                       job_.text_of(*first), place_text(job_, *first), say_ranks(finding.waiting),
                       inside.size() == 1 ? "was" : "were");
    finding.operations = {fmt::format("{} #{}", job_.group(*first).name, first->number)};
    set_times(finding);
    finding.next = say("all members came: look at the network and the devices of these ranks",
                       "所有成员都已到来：请查看这些 rank 的网络和设备");
    return {finding};
  }

  const JobCalls& job_;
  const Waits waits_;
  std::vector<int> axes_ = {};               // by group
  std::vector<std::vector<int>> waits_for_;  // by rank
  std::vector<std::vector<int>> waited_by_;
};

}  // namespace

std::vector<Finding> why_stuck(const JobCalls& job, const std::vector<JobMeeting>& meetings) {
  return Stuck(job, meetings).findings();
}

}  // namespace unisono::cli
