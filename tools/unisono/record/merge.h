// The recordings of all ranks as one document, unisono.trace/1 (docs/formats/trace.md).
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "top/why.h"
#include "trace/rank_record.h"
#include "trace/timeline.h"

namespace unisono::cli {

// The launcher's knowledge about the job.
struct JobEnd {
  int ranks = 0;                // 0: as many as the records say
  Text ended = {};              // why, unless all went well
  std::vector<Text> ends = {};  // by rank: "killed by SIGKILL"; may be empty
  // Ranks that ended by a signal that the user did not send, each with what to do about it.
  std::map<int, Text> gone = {};
  std::vector<int> by_chaos = {};  // of these, those that --chaos killed
  std::vector<int> stopped = {};   // ranks that the user stopped
  trace::ProcessEnds processes = {};
  std::vector<Finding> findings = {};  // made while the job still ran
};

// A page reads no more rows of one kind: of more events the newest are taken.
inline constexpr std::size_t kMostRecordedRows = 300'000;

nlohmann::ordered_json merge_records(const std::vector<trace::RankRecord>& records,
                                     const JobEnd& end, std::size_t most_rows = kMostRecordedRows);

// Describes errors of the run, and of the recording: first the ranks' own reports, or, if the job
// was stopped, why it did not continue; findings about the recording itself come last. See
// docs/formats/trace.md.
std::vector<Finding> findings_of(const std::vector<trace::RankRecord>& records,
                                 const trace::Timeline& timeline, const JobEnd& end,
                                 std::size_t most_rows);
// Why each world ended that did not in good order.
nlohmann::ordered_json aborts_of(const trace::Timeline& timeline);

}  // namespace unisono::cli
