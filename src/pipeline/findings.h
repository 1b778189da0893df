// Errors in a pipeline, as data and as sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/pipeline.h"

namespace unisono::pipeline {

struct Finding {
  enum class Kind : std::uint8_t {
    missing,     // no rank does `action`
    twice,       // `rank` does it a second time
    misplaced,   // `rank` does it, although the stage is on `other_rank`
    too_early,   // at `index`; `other` must come before it
    unpaired,    // `rank` sends or receives, but `other_rank` lacks the counterpart
    lane_order,  // `rank` sends `action` where `other_rank` receives `other`
    deadlock,    // ranks wait for each other, or for a finished rank: `waits`
  };
  // One rank of a deadlock, blocked at `action`. The transfer with `peer` at the front of the queue
  // is `head`.
  struct Wait {
    int rank = 0;
    Action action = {};
    int peer = -1;
    Action head = {};
    bool is_through = false;  // it has done all actions except `head`
    bool has_head = false;    // false: it has no pending transfer with `peer` before `action`
  };
  Kind kind = Kind::missing;
  int rank = -1;
  int index = -1;  // index among the actions of the rank
  Action action = {};
  int other_rank = -1;
  Action other = {};
  std::vector<Wait> waits = {};  // a cycle, or a chain to a rank that never answers
};

std::string_view to_string(Finding::Kind kind);
std::string sentence(const Finding& finding);

}  // namespace unisono::pipeline
