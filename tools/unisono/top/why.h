// Why a job does not go on: who waits for whom, down to those who wait for nobody.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "top/jobs.h"

namespace unisono::cli {

struct Finding {
  // "never called", "stopped", "gone", "left", "late", "deadlock", "mismatch", "unanswered" or
  // "elsewhere".
  std::string kind = {};
  std::vector<int> ranks = {};    // the culprits, in the world; of "unanswered" none
  std::vector<int> waiting = {};  // who waits for them, directly or not
  double waited_s = 0;            // the longest of these
  std::string text = {};          // one sentence
  std::vector<std::string> details = {};
  std::string next = {};   // what to do
  std::string later = {};  // the same when the processes are no more
};

// First what most ranks wait for. `now_ns` is of comm::board_clock_ns().
std::vector<Finding> explain_hang(const Job& job, std::int64_t now_ns);

// As `unisono trace why --json` prints them.
nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

}  // namespace unisono::cli
