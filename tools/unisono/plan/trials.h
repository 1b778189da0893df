// Shared by the fits of `unisono plan`: reading measurements, and reporting the error of a fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/account.h"
#include "cli/arguments.h"
#include "network_model/holdout.h"
#include "network_model/logs/printed_table.h"
#include "network_model/table.h"

namespace unisono::cli {

// Returns the operand's and -n's information for logs that lack it.
network_model::LogQuestion log_question_of(const Arguments& arguments);
// Reads a table, or the output of a benchmark, and adds the account. Throws UsageError.
network_model::Table load_table(const std::string& path, const network_model::LogQuestion& question,
                                std::vector<Account>& accounts);
// Reasons for leaving rows out.
inline constexpr const char* kOtherMachines = "of other machines";
// Prints the accounts of tables and logs, at the end of the output.
void print_accounts(const std::vector<Account>& accounts);
void add_accounts(nlohmann::ordered_json& json, const std::vector<Account>& accounts);
// Returns all machines of a table, or the machine of --only. Throws UsageError.
std::vector<std::string> machines_of(const network_model::Table& table, const Arguments& arguments);
// Counts the rows of other machines as left out.
void leave_out_others(const network_model::Table& table, const std::vector<std::string>& machines,
                      Account& account);
// "33 rows: all_reduce, 2 4 8 ranks, 1 MiB to 1 GiB". REQUIRES: there is a row.
std::string rows_text(const std::vector<cost::Point>& points);

// One test of a fit: the rows that were left out, and the error on them.
struct Trial {
  std::string name;
  network_model::Errors errors;
};

// Adds a trial, unless nothing was predicted.
void add_trial(std::vector<Trial>& trials, std::string name, network_model::Errors errors);
void print_trials(const std::vector<Trial>& trials);
nlohmann::ordered_json trials_json(const std::vector<Trial>& trials);

}  // namespace unisono::cli
