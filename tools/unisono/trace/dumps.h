// Reads files of other programs, one or several for each rank, on the command line of `unisono
// trace`.
#pragma once

#include <string>
#include <vector>

#include "base/account.h"
#include "imports/imports.h"

namespace unisono::cli {

struct Dumps {
  std::vector<ImportedRank> ranks = {};  // by rank
  Account account = {};                  // the caller sets `used`
};

// Returns true if the first path is a folder without recordings of unisono, or a file of a kind
// that read_dumps() reads.
bool are_dumps(const std::vector<std::string>& paths);
// Reads the files; a folder stands for its files. Throws UsageError.
Dumps read_dumps(const std::vector<std::string>& paths);

}  // namespace unisono::cli
