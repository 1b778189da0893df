#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "imports/imports.h"

namespace unisono::cli {
namespace {

using Key = std::tuple<std::string, int>;  // group, number

// The collectives whose end is a moment of all ranks: nobody has the result before all have come.
bool ends_together(const ImportedCall& call) {
  return call.end_us >= 0 && (call.collective == "all_reduce" || call.collective == "all_gather" ||
                              call.collective == "barrier" || call.collective == "all_to_all");
}

void number_calls(ImportedRank& rank) {
  std::map<std::string, int> counts;
  for (ImportedCall& call : rank.calls) {
    call.number = ++counts[call.group];
  }
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

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
      ends[{call.group, call.number}] = call.end_us;
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
        differences.push_back(call.end_us - found->second);
      }
    }
    if (differences.empty()) {
      uncertainty[i] = -1;
      continue;
    }
    std::ranges::sort(differences);
    const double offset = quantile(differences, 0.5);
    uncertainty[i] = (quantile(differences, 0.95) - quantile(differences, 0.05)) / 2;
    for (ImportedCall& call : rank.calls) {
      call.start_us -= offset;
      call.end_us -= call.end_us >= 0 ? offset : 0;
    }
  }
  return uncertainty;
}

}  // namespace unisono::cli
