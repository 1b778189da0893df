// Merges the recordings of all ranks into one document, unisono.trace/1 (docs/formats/trace.md).
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
  int ranks = 0;                // 0: the number in the records
  Text ended = {};              // why the job ended; empty: without an error
  std::vector<Text> ends = {};  // by rank: "killed by SIGKILL"; may be empty
  // Ranks that ended by a signal that the user did not send, each with advice.
  std::map<int, Text> gone = {};
  std::vector<int> by_chaos = {};  // the ranks among these that --chaos killed
  std::vector<int> stopped = {};   // ranks that the user stopped
  trace::ProcessEnds processes = {};
  std::vector<Finding> findings = {};  // made while the job still ran
};

// The most rows of one kind that a page reads. If there are more events, only the newest are kept.
inline constexpr std::size_t kMostRecordedRows = 300'000;

nlohmann::ordered_json merge_records(const std::vector<trace::RankRecord>& records,
                                     const JobEnd& end, std::size_t most_rows = kMostRecordedRows);

// Describes errors of the run and of the recording. First come the reports of the ranks or, if the
// launcher stopped the job, the reason why it hung; findings about the recording itself come last.
// See docs/formats/trace.md.
std::vector<Finding> findings_of(const std::vector<trace::RankRecord>& records,
                                 const trace::Timeline& timeline, const JobEnd& end,
                                 std::size_t most_rows);
// Returns the reason for each world that ended with an error.
nlohmann::ordered_json aborts_of(const trace::Timeline& timeline);

}  // namespace unisono::cli
