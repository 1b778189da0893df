// The property of any bytes given to the parser of counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "algorithms/catalog.h"
#include "engine/verify_sizes.h"
#include "schedule/counts.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure.
inline std::string counts_property(std::string_view text) {
  constexpr int kMostRanks = 12;  // with more ranks, the proof takes long
  const Parsed<Counts> parsed = parse_counts(text);
  if (!parsed) {
    return parsed.message.empty() ? "refused without a message" : "";
  }
  const Counts& counts = *parsed.value;
  if (counts.empty() || !check_counts(counts).message.empty()) {
    return "taken, but not right";
  }
  const Parsed<Counts> again = parse_counts(to_json(counts));
  if (!again || *again.value != counts) {
    return "not the same when read back";
  }
  bool same = true;
  for (int from = 0; from < counts.ranks(); ++from) {
    for (int to = 0; to < counts.ranks(); ++to) {
      same = same && counts.sent(from, to) == counts.expected(to, from);
    }
  }
  const CountTotals totals = totals_of(counts);
  if (same && (totals.largest > totals.most_sent || totals.most_sent > totals.all ||
               totals.most_received > totals.all)) {
    return "a part is more than the whole";
  }
  if (counts.ranks() > kMostRanks) {
    return "";
  }
  // The exchange is valid unless the two ends of a block have different counts.
  Schedule schedule = build_schedule(*find_algorithm(Collective::all_to_all, "pairwise"),
                                     {.ranks = counts.ranks()});
  schedule.counts = counts;
  return engine::verify_with_sizes(schedule).empty() == same
             ? ""
             : "proved what is wrong, or not what is right";
}

}  // namespace unisono::fuzz
