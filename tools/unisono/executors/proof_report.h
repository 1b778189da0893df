// The report of `unisono verify` about a proof of another executor's program.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console.h"
#include "executors/flaw.h"
#include "unisono/types.hpp"

namespace unisono::cli {

struct ProofReport {
  std::string schema;  // of the JSON
  std::string name;
  Collective collective = Collective::all_reduce;
  std::size_t gpus = 0;
  bool in_place = false;
  bool out_of_place = false;
  std::vector<executors::Flaw> flaws = {};
  nlohmann::ordered_json numbers = {};    // only for the JSON
  std::vector<std::string> remarks = {};  // about the parts that are right
};

// Prints the report, and returns the exit code.
int print_proof(const ProofReport& report, const Console& console);

}  // namespace unisono::cli
