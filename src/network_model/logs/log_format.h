// A format of what benchmarks print, for benchmark_log.h.
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
inline constexpr std::size_t kMostRows = 1'000'000;  // of a log

// Reads the lines of one process.
class LogFormat {
 public:
  virtual ~LogFormat() = default;
  virtual std::string_view name() const = 0;
  // Returns the position of this format's heading in a line; npos: there is none.
  virtual std::size_t heading_at(std::string_view line) const = 0;
  // A line of the part of the log that the last heading was of this format.
  virtual void read(const LogLine& line) = 0;
  // Any line, before read(): it may be the command that starts a test.
  virtual void see(std::string_view) {}

  std::vector<PrintedTable> take() { return std::move(tables_); }
  // Rows of all tables.
  std::size_t rows() const { return rows_; }

 protected:
  PrintedTable& begin(std::string test, std::size_t line);
  // To the last table.
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

// nccl-tests -J.
bool is_nccl_tests_json(std::string_view text);
Parsed<std::vector<PrintedTable>> read_nccl_tests_json(std::string_view text);

// "all_reduce_perf", "Allreduce", "AllReduce" -> all_reduce.
std::optional<Collective> collective_named_by_benchmark(std::string_view name);

}  // namespace unisono::network_model
