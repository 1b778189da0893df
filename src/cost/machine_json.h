// Fitted machines as JSON, `unisono.machine/1`: the measurements, the values fitted to them, and
// the resulting choices for calls. docs/formats/machine.md describes the format for users.
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
// Reading a machine does not repeat the fit, so it is fast enough for every start of a program.
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

// The host on which the machine was measured.
struct HostInfo {
  std::string cpu = {};  // the model's name; "": not known
  int cpus = 0;          // available to the ranks; 0: unknown
};

struct NamedMachine {
  std::string name;
  Machine machine;
  HostInfo host = {};
  Choices choices = {};
};

std::string to_json(const NamedMachine& machine);

// Fits a machine (network_model/fit_machine.h). If empty, a machine without groups predicts
// nothing.
using FitMachine = std::function<Machine(std::vector<Point>)>;

// Reads a machine, and fits it if it has no groups. The position of a failure is "byte N" if the
// text is not JSON, else a JSON pointer.
Parsed<NamedMachine> parse_machine_json(std::string_view text, const FitMachine& fit = {});
// Reads only the choices and skips the measurements, so that every start of a program can afford
// it.
Parsed<Choices> parse_choices_json(std::string_view text);

}  // namespace unisono::cost
