// Fitted machines as JSON, `unisono.machine/1`: the measurements, what was fitted to them, and what
// follows for calls. docs/formats/machine.md describes it for users.
//
//   {"format": "unisono.machine/1",
//    "name": "dgx-a100",
//    "points": {"collective": ["all_reduce", ...], "algorithm": ["", ...],
//               "ranks": [2, ...], "bytes": [1048576, ...], "time_us": [44.2, ...]},
//    "groups": [{"group": "",                              or "all_reduce/ring"
//                "trend": {"floor_us": 27.7, ...},         see trend.h
//                "residuals": {"scale": 1, "collective": [...], "ranks": [...], "bytes": [...],
//                              "weight": [...]}}],         see residuals.h
//    "host": {"cpu": "...", "cpus": 2},                     optional
//    "choices": {"collective": [...], "ranks": [...], "from_bytes": [...],
//                "algorithm": [...]},                       optional, see choices.h
//    "waits": {"ranks": [...], "oversubscribed": [...], "policy": [...]},   optional, likewise
//    "threads": {"collective": [...], "ranks": [...], "from_bytes": [...],
//                "threads": [...]}}                         optional, likewise
//
// Reading fits nothing again, so that it is quick enough for every start of a program.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "cost/choices.h"
#include "cost/machine.h"

namespace unisono::cost {

inline constexpr std::string_view kMachineFormat = "unisono.machine/1";

// The host of the measurement.
struct HostInfo {
  std::string cpu = {};  // the model's name; "": not known
  int cpus = 0;          // that the ranks could use; 0: not known
};

struct NamedMachine {
  std::string name;
  Machine machine;
  HostInfo host = {};
  Choices choices = {};
};

std::string to_json(const NamedMachine& machine);

// network_model/fit_machine.h; empty: a machine without groups predicts nothing.
using FitMachine = std::function<Machine(std::vector<Point>)>;

// The position is "byte N" where the text is no JSON, else a JSON pointer. A machine without groups
// is fitted.
Parsed<NamedMachine> parse_machine_json(std::string_view text, const FitMachine& fit = {});
// The choices alone, for every start of a program: the measurements are passed over.
Parsed<Choices> parse_choices_json(std::string_view text);

}  // namespace unisono::cost
