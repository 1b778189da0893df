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

// In the trace event format, which chrome://tracing and Perfetto read: a process for each rank; in
// it a track for each group, with slices for operations and in them for passes, and further tracks
// where passes overlap. Messages are arrows. Throws UsageError where the recording is not whole.
nlohmann::ordered_json chrome_trace_of(const nlohmann::ordered_json& trace);

// The ranks that came last to the operations of a recording, and their delays.
struct Skew {
  struct Rank {
    int rank = 0;
    std::size_t operations = 0;  // in which others were, too
    std::size_t last = 0;        // of them: it began last, by more than clocks are uncertain
    double late_us = 0;          // mean over `last`: behind the rank before it
    double most_us = 0;          // the longest of these
    double held_up_us = 0;       // what the others waited for it in all, at the most
  };
  // Operations that the program gave one label.
  struct Label {
    std::string text = {};
    std::size_t operations = 0;
    double held_up_us = 0;  // as of ranks, of all of them
    int worst = -1;         // who held up most; -1: nobody did
  };
  std::size_t operations = 0;               // that two ranks or more began
  std::vector<Rank> ranks = {};             // the one that held up most first
  std::vector<Label> labels = {};           // the one that held up most first
  std::vector<std::size_t> histogram = {};  // [k]: first to last less than 2^k us; the rest last
  // Since when the first of the ranks is mostly the last: the operation, and its beginning. Empty:
  // it was not the last more often than not at the end.
  std::string since = {};
  double since_us = 0;
};
// Throws UsageError where the recording is not whole.
Skew skew_of(const nlohmann::ordered_json& trace);

// One operation as a recording of its own, so that a page can show it beside what is predicted of
// it.
// `label`: "world #17", or "17". Times count from its beginning, and what is said of the whole
// recording goes along. Throws UsageError where there is no such operation in it.
nlohmann::ordered_json one_operation(const nlohmann::ordered_json& trace, const std::string& label);

}  // namespace unisono::cli
