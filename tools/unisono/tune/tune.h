// The parts of `unisono tune`.
#pragma once

#include <string>
#include <vector>

#include "base/account.h"
#include "cli/console.h"
#include "cost/machine_json.h"
#include "network_model/holdout.h"

namespace unisono::cli {

struct TuneReport {
  cost::NamedMachine machine;
  network_model::Errors errors;        // errors on points that were left out
  double slower = 1;                   // network_model::median_over_quickest()
  double seconds = 0;                  // time of the measurements; 0: nothing was measured
  std::string path;                    // of the profile
  std::vector<Account> accounts = {};  // of the tables of --table
};

void print_report(const TuneReport& report, const Console& console);

}  // namespace unisono::cli
