// The interface of a benchmark output format, for benchmark_log.h.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"
#include "network_model/logs/log_lines.h"
#include "network_model/logs/printed_table.h"

namespace unisono::network_model {

inline constexpr std::size_t kNoPlace = std::string_view::npos;
inline constexpr const char* kOtherUnit = "whose heading gives another unit than microseconds";
inline constexpr std::size_t kMostRows = 1'000'000;  // per log

// Reads the lines of one process.
class LogFormat {
 public:
  virtual ~LogFormat() = default;
  virtual std::string_view name() const = 0;
  // Returns the position of this format's heading in a line; npos: there is none.
  virtual std::size_t heading_at(std::string_view line) const = 0;
  // Reads a line of the log that follows a heading of this format.
  virtual void read(const LogLine& line) = 0;
  // Receives any line, before read(): it may be the command that starts a test.
  virtual void see(std::string_view) {}

  std::vector<PrintedTable> take() { return std::move(tables_); }
  // Returns the number of rows in all tables.
  std::size_t rows() const { return rows_; }

 protected:
  PrintedTable& begin(std::string test, std::size_t line);
  // Appends to the last table.
  void add(PrintedRow row) {
    ++rows_;
    table().rows.push_back(std::move(row));
  }
  bool has_table() const { return !tables_.empty(); }
  PrintedTable& table() { return tables_.back(); }

 private:
  std::vector<PrintedTable> tables_;
  std::size_t rows_ = 0;
};

std::unique_ptr<LogFormat> nccl_tests_format();
std::unique_ptr<LogFormat> osu_format();
std::unique_ptr<LogFormat> ucc_format();
std::unique_ptr<LogFormat> intel_format();  // of oneCCL and the Intel MPI benchmarks

// Returns true for the output of nccl-tests -J.
bool is_nccl_tests_json(std::string_view text);
Parsed<std::vector<PrintedTable>> read_nccl_tests_json(std::string_view text);

// Maps "all_reduce_perf", "Allreduce" or "AllReduce" to all_reduce.
std::optional<Collective> collective_named_by_benchmark(std::string_view name);

}  // namespace unisono::network_model
