#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/quantile.h"
#include "imports/imports.h"

namespace unisono::cli {
namespace {

using Key = std::tuple<std::string, int>;  // group, number

// Returns true for collectives that end at one moment on all ranks: no rank has the result before
// all ranks have arrived.
bool ends_together(const ImportedCall& call) {
  return call.end_us && (call.collective == "all_reduce" || call.collective == "all_gather" ||
                         call.collective == "barrier" || call.collective == "all_to_all");
}

void number_calls(ImportedRank& rank) {
  std::map<std::string, int> counts;
  for (ImportedCall& call : rank.calls) {
    call.number = ++counts[call.group];
  }
}

// A collective that all ranks of its group have logged can be placed when it is the next call of
// all of them.
struct Meeting {
  std::vector<std::size_t> ranks = {};  // indices of the ranks that have it
  std::size_t here = 0;                 // ranks whose next call it is
  bool is_whole = false;
};

}  // namespace

std::int64_t leave_out_before_all(std::vector<ImportedRank>& ranks) {
  std::map<std::string, std::int64_t>
      first;  // by group: the first call that all ranks of the group have
  for (const ImportedRank& rank : ranks) {
    std::map<std::string, std::int64_t> own;
    for (const ImportedCall& call : rank.calls) {
      if (rank.has_times && call.sequence >= 0) {  // RAS counts all calls of each collective
        const auto [known, is_new] = own.emplace(call.group, call.sequence);
        known->second = std::min(known->second, call.sequence);
      }
    }
    for (const auto& [group, sequence] : own) {
      first[group] = std::max(first[group], sequence);
    }
  }
  std::int64_t left_out = 0;
  for (ImportedRank& rank : ranks) {
    left_out += static_cast<std::int64_t>(std::erase_if(rank.calls, [&](const ImportedCall& call) {
      const auto found = first.find(call.group);
      return call.sequence >= 0 && found != first.end() && call.sequence < found->second;
    }));
  }
  return left_out;
}

std::vector<double> align(std::vector<ImportedRank>& ranks) {
  std::vector<double> uncertainty(ranks.size(), 0);
  for (ImportedRank& rank : ranks) {
    number_calls(rank);
  }
  if (ranks.empty()) {
    return uncertainty;
  }
  std::map<Key, double> ends;
  for (const ImportedCall& call : ranks.front().calls) {
    if (ends_together(call)) {
      ends[{call.group, call.number}] = *call.end_us;
    }
  }
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    ImportedRank& rank = ranks[i];
    if (!rank.host.empty() && rank.host == ranks.front().host) {
      continue;  // one clock
    }
    std::vector<double> differences;
    for (const ImportedCall& call : rank.calls) {
      const auto found = ends.find({call.group, call.number});
      if (ends_together(call) && found != ends.end()) {
        differences.push_back(*call.end_us - found->second);
      }
    }
    if (differences.empty()) {
      uncertainty[i] = -1;
      continue;
    }
    // An end that a watchdog saw is late by up to the watchdog's period, by half of it on average.
    // Two watchdogs that look alternately differ by one of two values, which average to zero.
    const double sum = std::accumulate(differences.begin(), differences.end(), 0.0);
    const double offset =
        rank.has_seen_ends ? sum / static_cast<double>(differences.size()) : median(differences);
    uncertainty[i] = (quantile(differences, 0.95) - quantile(differences, 0.05)) / 2;
    for (std::vector<ImportedCall>* calls : {&rank.calls, &rank.messages}) {
      for (ImportedCall& call : *calls) {
        call.start_us -= offset;
        call.issued_us -= offset;
        if (call.end_us) {
          *call.end_us -= offset;
        }
      }
    }
  }
  return uncertainty;
}

std::int64_t order(std::vector<ImportedRank>& ranks) {
  std::map<Key, Meeting> meetings;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    number_calls(ranks[i]);
    for (const ImportedCall& call : ranks[i].calls) {
      Meeting& meeting = meetings[{call.group, call.number}];
      meeting.ranks.push_back(i);
      const auto group = ranks[i].groups.find(call.group);
      meeting.is_whole =
          group != ranks[i].groups.end() && meeting.ranks.size() == group->second.size();
    }
  }
  double place = 0;
  std::vector<std::size_t> next(ranks.size(), 0);
  std::vector<std::size_t> going(ranks.size());  // ranks whose next call is still to be examined
  std::iota(going.begin(), going.end(), std::size_t{0});
  const auto pass = [&](std::size_t rank) {
    ImportedCall& call = ranks[rank].calls[next[rank]++];
    call.start_us = place;
    call.end_us = place;
    going.push_back(rank);
  };
  while (!going.empty()) {
    const std::size_t rank = going.back();
    going.pop_back();
    if (next[rank] == ranks[rank].calls.size()) {
      continue;
    }
    const ImportedCall& call = ranks[rank].calls[next[rank]];
    Meeting& meeting = meetings.at({call.group, call.number});
    if (!meeting.is_whole) {
      pass(rank);  // it will be left out
    } else if (++meeting.here == meeting.ranks.size()) {
      ++place;
      std::ranges::for_each(meeting.ranks, pass);
    }
  }
  std::int64_t stuck = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (; next[rank] < ranks[rank].calls.size(); ++next[rank], ++stuck) {
      ImportedCall& call = ranks[rank].calls[next[rank]];
      call.start_us = ++place;
      call.end_us = place;
    }
  }
  return stuck;
}

}  // namespace unisono::cli
