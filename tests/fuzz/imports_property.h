// The property of any bytes given to the readers of PyTorch's and NCCL's files, including those of
// NCCL Inspector and RAS.
#pragma once

#include <string>
#include <string_view>

#include "cli/failure.h"
#include "imports/imports.h"
#include "record/verdict.h"

namespace unisono::fuzz {

// Returns an empty text if the files were read, otherwise the reason for the refusal.
inline std::string refusal_of_import(std::string_view text) {
  try {
    cli::read_imports({{.path = "rank_0", .text = std::string(text)}});
    return "";
  } catch (const cli::UsageError& error) {
    return std::string("refused: ") + error.what();
  }
}

// Returns an empty text if the property holds, otherwise the failure.
inline std::string imports_property(std::string_view text) {
  std::vector<cli::ImportedRank> ranks;
  try {
    ranks = cli::read_imports({{.path = "rank_0", .text = std::string(text)}});
  } catch (const cli::UsageError& error) {
    return std::string_view(error.what()).empty() ? "refused without a message" : "";
  }
  if (ranks.empty()) {
    return "taken, and nothing was read";
  }
  if (cli::leave_out_before_all(ranks) != 0) {
    return "a rank alone has calls from before its first ones";
  }
  if (ranks.front().has_times) {
    static_cast<void>(cli::recording_of(ranks, cli::align(ranks)).dump());
  } else if (cli::order(ranks) < 0) {
    return "less than no calls in another order";
  }
  static_cast<void>(cli::who_is_behind(ranks));
  static_cast<void>(cli::workload_of(ranks).document.dump());
  static_cast<void>(cli::verdict_of(cli::job_calls_of(ranks)));
  return "";
}

}  // namespace unisono::fuzz
