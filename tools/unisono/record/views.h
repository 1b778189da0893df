// Views of a recording (unisono.trace/1) for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "top/why.h"

namespace unisono::cli {

// Returns the recording's findings; if it has none, the first operation that did not end. Findings
// about the recording itself (is_about_the_recording()) come last. Throws UsageError if the
// recording is incomplete.
std::vector<Finding> explain_recording(const nlohmann::ordered_json& trace);
bool is_about_the_recording(const Finding& finding);

// Converts a recording to the trace event format, which chrome://tracing and Perfetto read. Each
// rank is a process, with a track for each group, and further tracks if passes overlap. Operations
// are slices, which contain the slices of their passes. Messages are arrows. Throws UsageError if
// the recording is incomplete.
nlohmann::ordered_json chrome_trace_of(const nlohmann::ordered_json& trace);

// The ranks that came last to the operations of a recording, and their delays.
struct Skew {
  struct Rank {
    int rank = 0;
    std::size_t operations = 0;  // operations with at least one other rank
    std::size_t last = 0;   // operations that it began last, by more than the clocks' uncertainty
    double late_us = 0;     // mean over `last`: delay after the rank before it
    double most_us = 0;     // the longest delay
    double held_up_us = 0;  // upper bound of the total time that the others waited for it
  };
  // Operations that the program gave one label.
  struct Label {
    std::string text = {};
    std::size_t operations = 0;
    double held_up_us = 0;  // as for a rank, summed over all ranks
    int worst = -1;         // the rank that delayed others most; -1: none
  };
  std::size_t operations = 0;               // operations that two or more ranks began
  std::vector<Rank> ranks = {};             // the one that held up most first
  std::vector<Label> labels = {};           // the one that held up most first
  std::vector<std::size_t> histogram = {};  // [k]: first to last less than 2^k us; the rest last
  // The operation, with its time, since which the first of `ranks` has mostly been last. Empty: at
  // the end it was not last in most operations.
  std::string since = {};
  double since_us = 0;
};
// Throws UsageError if the recording is incomplete.
Skew skew_of(const nlohmann::ordered_json& trace);

// Returns one operation as a recording, so that a page can show it beside its prediction. `label`:
// "world #17", or "17". Times count from the beginning of the operation; findings about the whole
// recording are included. Throws UsageError if there is no such operation.
nlohmann::ordered_json one_operation(const nlohmann::ordered_json& trace, const std::string& label);

}  // namespace unisono::cli
