// Printed benchmark tables in any format, and the points taken from them.
//
// The readers of the formats (nccl_log.h, other_logs.h) fill PrintedTable. points_of() selects
// the rows to use, and determines on how many ranks each row was measured.
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
  bool is_wrong = false;  // results were checked, and some are wrong
};

struct PrintedRow {
  std::size_t line = 0;
  double bytes = 0;
  std::string kind = {};  // data type and operation: "float sum"; empty: not printed
  PrintedTime out_of_place = {};
  PrintedTime in_place = {};
  std::string flaw = {};  // why the row cannot count, for Account; empty: it can
};

struct PrintedTable {
  std::string test = {};  // "alltoall_perf"; empty: not in the log
  std::optional<Collective> collective = {};
  std::size_t line = 0;
  std::map<int, int> ranks = {};   // number of times that each rank is listed
  std::map<int, int> groups = {};  // ranks per group
  std::set<std::string> devices = {};
  int least_ranks = 0;                 // of one process, from its arguments
  int ranks_said = 0;                  // as printed; 0: use the list
  bool is_size_of_part = false;        // sizes are those of one rank's part, and a rank has one
                                       // part per rank
  bool is_bandwidth_of_part = false;   // bandwidths count one part, which goes to ranks - 1 ranks
  bool is_bandwidth_loose = false;     // versions differ in what the bandwidths count
  std::optional<bool> is_failed = {};  // from the last line
  std::vector<PrintedRow> rows = {};
};

// The user's information about a log that lacks it.
struct LogQuestion {
  std::optional<Collective> collective = {};
  int ranks = 0;  // 0: not given
};

struct BenchmarkLog {
  Table table = {};
  Account account = {};
};

// Fails if a table contradicts itself or lacks information, or if no row is left. The position of a
// failure is "line 17".
Parsed<BenchmarkLog> points_of(const std::string& source, const std::vector<PrintedTable>& tables,
                               const LogQuestion& question);

// Parses a whole word as a number ("1e+06", "nan"); a number beyond the range of double is
// infinite.
std::optional<double> number_of(std::string_view word);

}  // namespace unisono::network_model
