// Converts imported calls to the calls of a job.
#include "record/job_calls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "imports/imports.h"

namespace unisono::cli {
namespace {

// "3->5 in pp" -> {3, 5}; empty: not such a name.
std::vector<int> ends_of(const std::string& name) {
  const std::size_t arrow = name.find("->");
  std::vector<int> ends;
  for (const std::string& text : {name.substr(0, arrow), name.substr(arrow + 2)}) {
    int rank = 0;
    for (const char digit : text.substr(0, text.find(' '))) {
      rank = digit >= '0' && digit <= '9' && rank < 1'000'000 ? 10 * rank + (digit - '0') : -1;
      if (rank < 0) {
        return {};
      }
    }
    ends.push_back(rank);
  }
  return ends;
}

class Converter {
 public:
  explicit Converter(std::vector<ImportedRank>& ranks) : ranks_(ranks) {}

  JobCalls convert() {
    find_size();
    for (const ImportedRank& rank : ranks_) {
      const auto at = static_cast<std::size_t>(rank.rank);
      job_.has_record[at] = true;
      job_.hosts[at] = rank.host;
      add_groups(rank);
      job_.calls[at].reserve(rank.calls.size() + rank.messages.size());
      for (const ImportedCall& call : rank.calls) {
        job_.calls[at].push_back(converted(rank, call));
      }
      add_messages(rank);
      const auto when = [](const JobCall& call) {
        return std::isnan(call.issued_us) ? call.start_us : call.issued_us;
      };
      if (!std::ranges::is_sorted(job_.calls[at], {}, when)) {
        std::ranges::stable_sort(job_.calls[at], {}, when);
      }
    }
    if (std::ranges::any_of(ranks_, &ImportedRank::has_seen_ends)) {
      set_seen_ends();
    }
    return std::move(job_);
  }

 private:
  // An operation with an end that several watchdogs saw.
  struct SeenOperation {
    double end_us = kUnknownUs;
    std::vector<std::pair<std::size_t, std::size_t>> calls = {};  // rank, and place in job_.calls
    std::size_t later = 0;  // calls directly after one of these with an unsettled operation
  };

  // An operation ended before the first watchdog saw its end, and before the next call of any of
  // its ranks began, unless a watchdog saw the two overlap. Exact durations bound the ends much
  // more closely than the watchdogs' periods.
  void set_seen_ends() {
    std::vector<SeenOperation> operations;
    std::vector<std::vector<std::size_t>> operation_of(job_.calls.size());  // by rank and call
    std::map<int, std::unordered_map<int, std::size_t>> known;              // by group and number
    for (std::size_t rank = 0; rank < job_.calls.size(); ++rank) {
      for (std::size_t at = 0; at < job_.calls[rank].size(); ++at) {
        const JobCall& call = job_.calls[rank][at];
        const auto [found, is_new] = known[call.group].try_emplace(call.number, operations.size());
        if (is_new) {
          operations.emplace_back();
        }
        SeenOperation& operation = operations[found->second];
        operation.end_us = std::fmin(operation.end_us, call.end_us);
        operation.calls.emplace_back(rank, at);
        operation_of[rank].push_back(found->second);
        if (follows(rank, at)) {
          ++operations[operation_of[rank][at - 1]].later;
        }
      }
    }
    std::vector<std::size_t> settled;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (operations[i].later == 0) {
        settled.push_back(i);
      }
    }
    while (!settled.empty()) {
      const SeenOperation& operation = operations[settled.back()];
      settled.pop_back();
      for (const auto& [rank, at] : operation.calls) {
        if (!follows(rank, at)) {
          continue;
        }
        SeenOperation& before = operations[operation_of[rank][at - 1]];
        before.end_us = std::min(before.end_us, operation.end_us - job_.calls[rank][at].took_us);
        if (--before.later == 0) {
          settled.push_back(operation_of[rank][at - 1]);
        }
      }
    }
    for (std::size_t rank = 0; rank < job_.calls.size(); ++rank) {
      for (std::size_t at = 0; at < job_.calls[rank].size(); ++at) {
        JobCall& call = job_.calls[rank][at];
        call.end_us = call.is_ended ? operations[operation_of[rank][at]].end_us : call.end_us;
      }
    }
  }

  // Returns true if the watchdog saw the previous call end before it saw this call begin.
  bool follows(std::size_t rank, std::size_t at) const {
    const std::vector<JobCall>& calls = job_.calls[rank];
    return at > 0 && calls[at].is_ended && calls[at - 1].is_ended &&
           calls[at].start_us >= calls[at - 1].end_us;
  }

  void find_size() {
    job_.ranks = 0;
    for (const ImportedRank& rank : ranks_) {
      job_.ranks = std::max(job_.ranks, rank.rank + 1);
      for (const auto& [name, members] : rank.groups) {
        for (const int member : members) {
          job_.ranks = std::max(job_.ranks, member + 1);
        }
      }
      job_.has_times = job_.has_times && rank.has_times;
    }
    const auto size = static_cast<std::size_t>(job_.ranks);
    job_.calls.resize(size);
    job_.hosts.resize(size);
    job_.has_record.assign(size, false);
    job_.has_lost.assign(size, false);
  }

  void add_groups(const ImportedRank& rank) {
    for (const auto& [name, members] : rank.groups) {
      JobGroup& group = job_.groups[static_cast<std::size_t>(job_.group_of(name))];
      if (group.members.empty()) {
        group.members = members;
      }
      if (const auto axis = rank.axes.find(name); axis != rank.axes.end()) {
        group.axis = axis->second;
      }
    }
  }

  JobCall converted(const ImportedRank& rank, const ImportedCall& call) {
    return {.rank = rank.rank,
            .group = job_.group_of(call.group),
            .number = call.number,
            .shown = call.sequence >= 0 ? call.sequence : call.number,
            .what = job_.name_of(call.collective),
            .dtype = job_.name_of(call.dtype),
            .bytes = call.bytes,
            .received = call.received,
            .issued_us = call.issued_us,
            .start_us = call.start_us,
            .took_us = !call.end_us               ? kUnknownUs
                       : std::isnan(call.took_us) ? *call.end_us - call.start_us
                                                  : call.took_us,
            .end_us = call.end_us.value_or(kUnknownUs),
            .is_begun = call.is_begun,
            .is_ended = call.end_us.has_value(),
            .place = call.place.empty() ? -1 : job_.name_of(call.place)};
  }

  // Numbers messages. A recorder keeps only the latest ones. Both ends have completed the same
  // number of messages, so their latest completed messages are the same: these count down from -1,
  // and messages that have not ended count up from 1.
  void add_messages(const ImportedRank& rank) {
    std::map<std::string, int> ended;
    for (const ImportedCall& call : rank.messages) {
      ended[call.group] += call.end_us ? 1 : 0;
    }
    std::map<std::string, int> next;
    for (const ImportedCall& call : rank.messages) {
      const std::vector<int> ends = ends_of(call.group);
      if (ends.size() != 2 || ends[0] >= job_.ranks || ends[1] >= job_.ranks ||
          ends[0] == ends[1]) {
        continue;
      }
      JobCall made = converted(rank, call);
      JobGroup& group = job_.groups[static_cast<std::size_t>(made.group)];
      group.members = ends;
      group.axis = "messages";
      group.is_message = true;
      made.number = call.end_us ? -ended[call.group]-- : ++next[call.group];
      made.shown = made.number;
      job_.calls[static_cast<std::size_t>(rank.rank)].push_back(made);
    }
  }

  std::vector<ImportedRank>& ranks_;
  JobCalls job_;
};

}  // namespace

JobCalls job_calls_of(std::vector<ImportedRank>& ranks) {
  if (!ranks.empty() && ranks.front().has_times) {
    align(ranks);
  } else {
    order(ranks);
  }
  return Converter(ranks).convert();
}

}  // namespace unisono::cli
