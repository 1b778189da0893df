// Why a job does not go on: who waits for whom, down to those who wait for nobody.
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
  std::vector<int> ranks = {};    // the culprits, in the world; of "unanswered" none
  std::vector<int> waiting = {};  // who waits for them, directly or not
  double waited_s = 0;            // the longest of these
  Text text = {};                 // one sentence
  std::vector<Text> details = {};
  Text next = {};                            // what to do, in lines
  Text later = {};                           // the same when the processes are no more
  std::vector<std::string> operations = {};  // of a recording, that it is about: "world #17"
  bool is_abort = false;                     // it is what the ranks themselves ended with
};

// First what most ranks wait for. `now_ns` is of comm::board_clock_ns().
std::vector<Finding> explain_hang(const Job& job, std::int64_t now_ns);

// As `unisono trace why --json` prints them: in English, and beside that in Chinese.
nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
nlohmann::ordered_json finding_json(const Finding& finding);

}  // namespace unisono::cli
