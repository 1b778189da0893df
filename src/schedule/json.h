// Schedules as JSON, `unisono.schedule/1`: the moves in columns of equal length.
//
//   {"format": "unisono.schedule/1",
//    "collective": "all_reduce", "algorithm": "ring",
//    "ranks": 2, "root": 0, "chunks": 2, "steps": 2,
//    "file": "src/algorithms/all_reduce_ring.cc",
//    "phases": {"name": ["reduce_scatter", "all_gather"], "first_step": [0, 1]},
//    "moves": {"step": [0, ...], "from": [0, ...], "to": [1, ...],
//              "chunk": [1, ...], "chunks": [1, ...],
//              "source": ["output", ...], "target": ["output", ...],
//              "combine": ["reduce", ...], "line": [28, ...]},
//    "counts": {"element_bytes": 4096, "send": [[0, 5], [3, 0]], "receive": [[0, 3], [5, 0]]}}
//
// `counts` is allowed only for all_to_all, and holds the counts of one call (schedule/counts.h).
// These keys may be missing: `counts`, `algorithm`, `file`, `phases`, `root` (if the collective has
// none), and the columns `chunks` (then 1) and `line` (then unknown). Other keys are not allowed.
// Numbers are integers. Limits: 4096 ranks, 2^24 chunks, 2^30 steps, 50 million moves.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "schedule/schedule.h"

namespace unisono {

inline constexpr std::string_view kScheduleFormat = "unisono.schedule/1";

std::string to_json(const Schedule& schedule);

// The numbers in the result are in range, and its moves are in order; verify() must check
// everything else. The position of an error is "byte N" if the text is not JSON, otherwise a JSON
// pointer.
Parsed<Schedule> parse_schedule_json(std::string_view text);

}  // namespace unisono
