// Finds why a job hangs: follows the waits of ranks to the ranks that wait for nobody.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/text.h"
#include "top/jobs.h"

namespace unisono::cli {

struct Finding {
  // "never called", "stopped", "gone", "left", "late", "deadlock", "mismatch", "unanswered" or
  // "elsewhere".
  std::string kind = {};
  std::vector<int> ranks = {};    // the culprits, in the world; empty for "unanswered"
  std::vector<int> waiting = {};  // the ranks that wait for them, directly or not
  double waited_s = 0;            // the longest of these waits
  Text text = {};                 // one sentence
  std::vector<Text> details = {};
  Text next = {};   // advice, in lines
  Text later = {};  // the advice after the processes have ended
  std::vector<std::string> operations =
      {};                 // of a recording: the operations of the finding, "world #17"
  bool is_abort = false;  // the error with which the ranks themselves ended
};

// Returns the cause for which most ranks wait first. `now_ns` is of comm::board_clock_ns().
std::vector<Finding> explain_hang(const Job& job, std::int64_t now_ns);

// As `unisono trace why --json` prints them: in English, and beside that in Chinese.
nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
nlohmann::ordered_json finding_json(const Finding& finding);

}  // namespace unisono::cli
