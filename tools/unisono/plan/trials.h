// What the fits of `unisono plan` share: reading measurements, and saying how far off a fit is.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "model/holdout.h"
#include "model/table.h"

namespace unisono::cli {

// A table, or what nccl-tests printed: `collective` is that of a log that does not say it. Throws
// UsageError.
model::Table load_table(const std::string& path, std::optional<Collective> collective);
// All machines of a table, or that of --only. Throws UsageError.
std::vector<std::string> machines_of(const model::Table& table, const Arguments& arguments);
// "33 rows: all_reduce, 2 4 8 ranks, 1 MiB to 1 GiB". REQUIRES: there are some.
std::string rows_text(const std::vector<model::Point>& points);

// One way of testing a fit: what was left out, and how far off it was there.
struct Trial {
  std::string name;
  model::Errors errors;
};

// Unless nothing was predicted.
void add_trial(std::vector<Trial>& trials, std::string name, model::Errors errors);
void print_trials(const std::vector<Trial>& trials);
nlohmann::ordered_json trials_json(const std::vector<Trial>& trials);

}  // namespace unisono::cli
