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
// `counts`, of all_to_all alone, are those of one call (schedule/counts.h). They, `algorithm`,
// `file`, `phases`, `root` (where the collective has none) and the columns `chunks` (then 1) and
// `line` (then unknown) may be left out; nothing may be added. Numbers are whole.
// Limits: 4096 ranks, 2^24 chunks, 2^30 steps, 50 million moves.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "schedule/schedule.h"

namespace unisono {

inline constexpr std::string_view kScheduleFormat = "unisono.schedule/1";

std::string to_json(const Schedule& schedule);

// The numbers of the result are in range and its moves in order; whether it is right is for
// verify() to say. The position is "byte N" where the text is no JSON, else a JSON pointer.
Parsed<Schedule> parse_schedule_json(std::string_view text);

}  // namespace unisono
