// Prints an account of how a reader interpreted a file (base/account.h). Every reader of files that
// other programs wrote ends with such a text:
//
//   nccl-tests: 10 rows read, 5 used
//     5 left out: of sendrecv_perf, which tests no collective of unisono
//     assumed: 2 ranks, the size of each group; 16 are listed
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/account.h"
#include "cli/console.h"

namespace unisono::cli {

// The lines above, without a line break at the end.
std::string account_text(const Account& account);
// Writes the lines as notes on standard error.
void note_account(const Account& account, const Console& console);
// {"source", "unit", "read", "used", "left_out": [{"count", "why"}], "assumed": [...]}
nlohmann::ordered_json account_json(const Account& account);

}  // namespace unisono::cli
