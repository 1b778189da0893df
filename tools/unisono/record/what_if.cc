#include "record/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/quantile.h"
#include "cli/failure.h"
#include "record/replay_transfers.h"

namespace unisono::cli {
namespace {

constexpr std::size_t kLeastToSimulate = 2;

bool is_whole(const JobCalls& job, const JobMeeting& meeting) {
  return meeting.calls.size() == job.group(meeting.first()).members.size() &&
         std::ranges::all_of(meeting.calls, [](const JobCall* call) {
           return call->is_ended && !std::isnan(call->took_us) && call->took_us >= 0;
         });
}

// Returns true for operations that no rank leaves before all have arrived, even if the clocks
// suggest otherwise.
bool waits_for_all(const std::string& collective) {
  return collective == "all_reduce" || collective == "all_gather" || collective == "barrier" ||
         collective == "all_to_all" || collective == "reduce_scatter";
}

bool has(const std::vector<int>& ranks, int rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

// Returns the intercept of the least-squares line through the medians of each size; below 0: there
// is only one size.
double intercept(const std::map<double, std::vector<double>>& us_by_bytes) {
  double count = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  for (const auto& [bytes, us] : us_by_bytes) {
    const double middle = median(us);
    count += 1;
    x += bytes;
    y += middle;
    xx += bytes * bytes;
    xy += bytes * middle;
  }
  const double spread = count * xx - x * x;
  return count < 2 || spread <= 0 ? -1 : (y * xx - x * xy) / spread;
}

}  // namespace

WhatIf::WhatIf(const JobCalls& job, Account& account) : job_(job) {
  if (!job.has_times) {
    throw UsageError("there are no times to simulate: NCCL's log has only the order of the calls",
                     "give traces of PyTorch's profiler or dumps of its flight recorder",
                     "unisono help trace");
  }
  by_rank_.resize(static_cast<std::size_t>(job.ranks));
  add_operations(meetings_of(job), account);
  if (operations_.size() < kLeastToSimulate) {
    throw UsageError(
        fmt::format("too little is recorded to simulate: all ranks ended {} operation{}",
                    operations_.size(), operations_.size() == 1 ? "" : "s"),
        fmt::format("at least {} are needed; unisono trace why says what the ranks wait for",
                    kLeastToSimulate),
        "unisono help trace");
  }
  anchor_calls();
  measure_operations();
  fit_latencies();
}

void WhatIf::add_operations(const std::vector<JobMeeting>& meetings, Account& account) {
  std::map<const JobCall*, std::size_t> operation_of;
  std::int64_t left_out = 0;
  for (const JobMeeting& meeting : meetings) {
    if (!is_whole(job_, meeting)) {
      left_out += static_cast<std::int64_t>(meeting.calls.size());
      continue;
    }
    for (const JobCall* call : meeting.calls) {
      operation_of[call] = operations_.size();
    }
    operations_.emplace_back();
  }
  account.leave_out(left_out, "of operations that not all ranks of their group ended");
  for (std::size_t rank = 0; rank < job_.calls.size(); ++rank) {
    for (const JobCall& call : job_.calls[rank]) {
      if (const auto found = operation_of.find(&call); found != operation_of.end()) {
        operations_[found->second].calls.push_back(calls_.size());
        by_rank_[rank].push_back(calls_.size());
        calls_.push_back({.recorded = &call,
                          .operation = found->second,
                          .start_us = call.end_us - call.took_us});
      }
    }
  }
  account.used = static_cast<std::int64_t>(calls_.size());
  account.assume("ranks compute in all the time between their calls");
  account.assume("an operation takes as long as recorded, from the arrival of its last rank on");
}

void WhatIf::anchor_calls() {
  double last_us = -HUGE_VAL;
  first_us_ = HUGE_VAL;
  for (const Call& call : calls_) {
    first_us_ = std::min(first_us_, call.start_us);
    last_us = std::max(last_us, call.recorded->end_us);
  }
  recorded_us_ = last_us - first_us_;
  for (std::vector<std::size_t>& calls : by_rank_) {
    std::ranges::stable_sort(calls, {}, [this](std::size_t at) { return calls_[at].start_us; });
    std::vector<std::size_t> by_end = calls;
    std::ranges::stable_sort(by_end, {},
                             [this](std::size_t at) { return calls_[at].recorded->end_us; });
    std::size_t ended = 0;
    std::size_t previous = kNone;
    for (const std::size_t at : calls) {
      Call& call = calls_[at];
      double anchor_us = first_us_;
      if (previous != kNone) {
        call.anchor = previous;
        anchor_us = calls_[previous].start_us;
      }
      while (ended < by_end.size() && calls_[by_end[ended]].recorded->end_us <= call.start_us) {
        ++ended;
      }
      // A call with a duration of 0 ends when it starts, but does not precede itself.
      std::size_t latest = ended;
      while (latest > 0 && calls_[by_end[latest - 1]].start_us >= call.start_us) {
        --latest;
      }
      if (latest > 0 && calls_[by_end[latest - 1]].recorded->end_us >= anchor_us) {
        call.anchor = by_end[latest - 1];
        call.is_after_end = true;
        anchor_us = calls_[call.anchor].recorded->end_us;
      }
      call.compute_us = call.start_us - anchor_us;
      previous = at;
    }
  }
  for (std::size_t at = 0; at < calls_.size(); ++at) {
    places_[place_of(calls_[at])].push_back(at);
  }
}

WhatIf::Place WhatIf::place_of(const Call& call) const {
  return {call.operation, call.anchor == kNone ? kNone : calls_[call.anchor].operation,
          call.is_after_end};
}

void WhatIf::measure_operations() {
  for (Operation& operation : operations_) {
    operation.begin_us = -HUGE_VAL;
    for (const std::size_t at : operation.calls) {
      operation.begin_us = std::max(operation.begin_us, calls_[at].start_us);
    }
    for (const std::size_t at : operation.calls) {
      Call& call = calls_[at];
      const double end_us = call.recorded->end_us;
      call.waits = waits_for_all(job_.what(*call.recorded)) || end_us > operation.begin_us;
      call.rest_us =
          call.waits ? std::max(0.0, end_us - operation.begin_us) : call.recorded->took_us;
      operation.moving_us = std::max(operation.moving_us, call.rest_us);
    }
  }
}

// Splits the time of each kind of operation into a time that no faster link shortens and a time per
// byte.
void WhatIf::fit_latencies() {
  using Kind = std::tuple<int, std::size_t>;  // collective, ranks
  std::map<Kind, std::map<double, std::vector<double>>> us_by_kind;
  const auto first = [this](const Operation& one) -> const JobCall& {
    return *calls_[one.calls.front()].recorded;
  };
  for (const Operation& one : operations_) {
    us_by_kind[{first(one).what, one.calls.size()}][first(one).bytes].push_back(one.moving_us);
  }
  std::map<Kind, double> latency;
  for (const auto& [kind, us_by_bytes] : us_by_kind) {
    latency[kind] = std::max(0.0, intercept(us_by_bytes));
    has_latencies_ |= us_by_bytes.size() > 1;
  }
  for (Operation& one : operations_) {
    one.latency_us = std::min(one.moving_us, latency[{first(one).what, one.calls.size()}]);
  }
}

// Replaces the computing times of a rank by those of the others at the same places. At a place
// without other ranks, its time is shortened in the same proportion as elsewhere.
void WhatIf::replace(int rank, const std::vector<int>& without, std::vector<double>& us) const {
  double own = 0;
  double others = 0;
  std::vector<std::size_t> alone;
  for (const std::size_t at : by_rank_[static_cast<std::size_t>(rank)]) {
    std::vector<double> peers;
    for (const std::size_t peer : places_.at(place_of(calls_[at]))) {
      if (!has(without, calls_[peer].recorded->rank)) {
        peers.push_back(calls_[peer].compute_us);
      }
    }
    if (peers.empty()) {
      alone.push_back(at);
      continue;
    }
    own += us[at];
    us[at] = std::min(us[at], median(peers));
    others += us[at];
  }
  if (alone.size() == by_rank_[static_cast<std::size_t>(rank)].size()) {
    throw UsageError(
        fmt::format("rank {} cannot be compared: it shares no operation with a rank that is kept",
                    rank),
        "name fewer ranks, or use --faster", "unisono help trace");
  }
  for (const std::size_t at : alone) {
    us[at] *= own > 0 ? others / own : 1;
  }
}

bool WhatIf::can_replace(const std::vector<int>& ranks) const {
  const auto stays = [&](std::size_t peer) { return !has(ranks, calls_[peer].recorded->rank); };
  return std::ranges::all_of(ranks, [&](int rank) {
    return std::ranges::any_of(by_rank_[static_cast<std::size_t>(rank)], [&](std::size_t at) {
      return std::ranges::any_of(places_.at(place_of(calls_[at])), stays);
    });
  });
}

std::vector<double> WhatIf::computes(const Change& change) const {
  std::vector<double> us;
  us.reserve(calls_.size());
  for (const Call& call : calls_) {
    us.push_back(call.compute_us);
  }
  for (const int rank : change.without) {
    replace(rank, change.without, us);
  }
  for (std::size_t at = 0; at < calls_.size(); ++at) {
    const bool is_faster = change.faster.empty() || has(change.faster, calls_[at].recorded->rank);
    us[at] /= is_faster ? change.compute : 1;
  }
  return us;
}

double WhatIf::moves(const Operation& operation, const Change& change, double us) const {
  if (std::isinf(change.link)) {
    return 0;
  }
  const JobCall& first = *calls_[operation.calls.front()].recorded;
  if (change.group >= 0) {
    return first.group == change.group ? us / change.link : us;
  }
  const double latency = std::min(us, operation.latency_us);
  return latency + (us - latency) / change.link;
}

double WhatIf::run(const Change& change) const {
  const std::vector<double> compute = computes(change);
  std::vector<std::vector<std::size_t>> after_begin(calls_.size());
  std::vector<std::vector<std::size_t>> after_end(calls_.size());
  using Event = std::pair<std::size_t, double>;  // a call, and when it starts
  std::vector<Event> starts;
  for (std::size_t at = 0; at < calls_.size(); ++at) {
    if (const Call& call = calls_[at]; call.anchor == kNone) {
      starts.emplace_back(at, compute[at]);
    } else {
      (call.is_after_end ? after_end : after_begin)[call.anchor].push_back(at);
    }
  }
  std::vector<double> begin(operations_.size(), 0);
  std::vector<std::size_t> here(operations_.size(), 0);
  std::size_t started = 0;
  double last = 0;
  const auto end_call = [&](std::size_t at, double us) {
    last = std::max(last, us);
    for (const std::size_t next : after_end[at]) {
      starts.emplace_back(next, us + compute[next]);
    }
  };
  while (!starts.empty()) {
    const auto [at, us] = starts.back();
    starts.pop_back();
    ++started;
    const Call& call = calls_[at];
    const Operation& operation = operations_[call.operation];
    for (const std::size_t next : after_begin[at]) {
      starts.emplace_back(next, us + compute[next]);
    }
    if (!call.waits) {
      end_call(at, us + moves(operation, change, call.rest_us));
    }
    begin[call.operation] = std::max(begin[call.operation], us);
    if (++here[call.operation] == operation.calls.size()) {
      for (const std::size_t member : operation.calls) {
        if (calls_[member].waits) {
          end_call(member,
                   begin[call.operation] + moves(operation, change, calls_[member].rest_us));
        }
      }
    }
  }
  if (started < calls_.size()) {
    throw UsageError("the recording contradicts itself: calls begin before calls that they follow",
                     "its ranks' clocks may be wrong", "unisono help trace");
  }
  return last;
}

std::vector<int> WhatIf::stragglers() const {
  constexpr double kClearly = 0.02;
  std::vector<double> own(by_rank_.size(), 0);
  std::vector<double> known;
  for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) {
    for (const std::size_t at : by_rank_[rank]) {
      own[rank] += calls_[at].compute_us;
    }
    if (!by_rank_[rank].empty()) {
      known.push_back(own[rank]);
    }
  }
  const double usual = median(known);
  const double most = *std::ranges::max_element(own) - usual;
  std::vector<int> found;
  for (std::size_t rank = 0; rank < own.size(); ++rank) {
    if (most > kClearly * usual && own[rank] - usual >= most / 2) {
      found.push_back(static_cast<int>(rank));
    }
  }
  // If there are more, they are not stragglers: the ranks do different work.
  return found.size() > 1 && 4 * found.size() > known.size() ? std::vector<int>() : found;
}

SlowLink WhatIf::slow_link() const {
  using Kind = std::tuple<std::string, int, double, std::size_t>;  // axis, what, bytes, ranks
  std::map<Kind, std::map<int, std::vector<double>>> us_of;
  for (const Operation& one : operations_) {
    const JobCall& first = *calls_[one.calls.front()].recorded;
    us_of[{job_.group(first).axis, first.what, first.bytes, one.calls.size()}][first.group]
        .push_back(one.moving_us);
  }
  std::map<int, std::pair<double, double>> sums;  // by group: its time, and the others' time
  for (const auto& [kind, groups] : us_of) {
    for (const auto& [group, us] : groups) {
      std::vector<double> others;
      for (const auto& [other, of_other] : groups) {
        if (other != group) {
          others.push_back(median(of_other));
        }
      }
      if (!others.empty()) {
        const auto calls = static_cast<double>(us.size());
        sums[group].first += calls * median(us);
        sums[group].second += calls * median(others);
      }
    }
  }
  SlowLink slow;
  double most = 0;
  for (const auto& [group, sum] : sums) {
    if (sum.second > 0 && sum.first - sum.second > most) {
      most = sum.first - sum.second;
      slow = {.group = group, .ratio = sum.first / sum.second};
    }
  }
  return slow;
}

void add_transfers(const nlohmann::ordered_json& trace, JobCalls& job) {
  std::map<std::pair<int, bool>, int> next;
  const PlayedTransfers transfers(trace);
  for (const PlayedTransfer& one : transfers.all()) {
    const auto& [group, from, to, tag] = one.key;
    if (from < 0 || to < 0 || from >= job.ranks || to >= job.ranks || from == to) {
      continue;
    }
    const int index = job.group_of(fmt::format("{}->{} in {}, tag {}", from, to, group, tag));
    JobGroup& made = job.groups[static_cast<std::size_t>(index)];
    made.members = {from, to};
    made.axis = "messages";
    made.is_message = true;
    const int number = ++next[{index, one.sends}];
    if (std::isinf(one.end_us)) {
      continue;  // its number stays unused, so that later transfers keep the numbers of their other
                 // ends
    }
    job.calls[static_cast<std::size_t>(one.rank())].push_back({.rank = one.rank(),
                                                               .group = index,
                                                               .number = number,
                                                               .shown = number,
                                                               .what = job.name_of("message"),
                                                               .start_us = one.begin_us,
                                                               .took_us = one.end_us - one.begin_us,
                                                               .end_us = one.end_us});
  }
}

}  // namespace unisono::cli
