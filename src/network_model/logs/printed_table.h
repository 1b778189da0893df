// Tables that benchmarks print, whatever their format, and what is taken from them.
//
// The readers of the formats (nccl_log.h, other_logs.h) fill PrintedTable. points_of() decides
// which rows count, and among how many ranks they were measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/account.h"
#include "base/parsed.h"
#include "network_model/table.h"

namespace unisono::network_model {

// A time with its bandwidths (GB/s). Empty: not printed, or N/A.
struct PrintedTime {
  std::optional<double> us = {};
  std::optional<double> algbw = {};
  std::optional<double> busbw = {};
  bool is_wrong = false;  // the results were checked, and some are wrong
};

struct PrintedRow {
  std::size_t line = 0;
  double bytes = 0;
  std::string kind = {};  // data type and operation: "float sum"; empty: not printed
  PrintedTime out_of_place = {};
  PrintedTime in_place = {};
  std::string flaw = {};  // why it cannot count, as Account says it; empty: none
};

struct PrintedTable {
  std::string test = {};  // "alltoall_perf"; empty: the log does not say it
  std::optional<Collective> collective = {};
  std::size_t line = 0;
  std::map<int, int> ranks = {};   // how often each rank is listed
  std::map<int, int> groups = {};  // how many ranks each group has
  std::set<std::string> devices = {};
  int least_ranks = 0;                 // of one process, by its arguments
  int ranks_said = 0;                  // 0: as listed
  bool is_size_of_part = false;        // sizes are of one rank's part, and a rank has one of each
  bool is_bandwidth_of_part = false;   // bandwidths count one part, which goes to ranks - 1
  bool is_bandwidth_loose = false;     // what the bandwidths count differs between versions
  std::optional<bool> is_failed = {};  // by the line at the end
  std::vector<PrintedRow> rows = {};
};

// The user's information about a log that lacks it.
struct LogQuestion {
  std::optional<Collective> collective = {};
  int ranks = 0;  // 0: nothing
};

struct BenchmarkLog {
  Table table = {};
  Account account = {};
};

// Fails if a table contradicts itself or lacks information, or if no row is left. The position of a
// failure is "line 17".
Parsed<BenchmarkLog> points_of(const std::string& source, const std::vector<PrintedTable>& tables,
                               const LogQuestion& question);

// A whole word that is a number ("1e+06", "nan"); one beyond a double is infinite.
std::optional<double> number_of(std::string_view word);

}  // namespace unisono::network_model
