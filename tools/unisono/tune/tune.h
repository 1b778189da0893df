// The parts of `unisono tune`.
#pragma once

#include <string>

#include "cli/console.h"
#include "model/holdout.h"
#include "model/machine_json.h"

namespace unisono::cli {

struct TuneReport {
  model::NamedMachine machine;
  model::Errors errors;  // of points left out
  double slower = 1;     // model::median_over_quickest()
  double seconds = 0;    // of measuring; 0: nothing was measured
  std::string path;      // of the profile
};

void print_report(const TuneReport& report, const Console& console);

}  // namespace unisono::cli
