// Files that other programs left, one or several for each rank, on the command line of
// `unisono trace`.
#pragma once

#include <string>
#include <vector>

#include "base/account.h"
#include "imports/imports.h"

namespace unisono::cli {

struct Dumps {
  std::vector<ImportedRank> ranks = {};  // by rank
  Account account = {};                  // `used` is for the caller to set
};

// Returns true if the first of the paths is a folder without recordings of ours, or begins like one
// of the files that read_dumps() reads.
bool are_dumps(const std::vector<std::string>& paths);
// A folder stands for its files. Throws UsageError.
Dumps read_dumps(const std::vector<std::string>& paths);

}  // namespace unisono::cli
