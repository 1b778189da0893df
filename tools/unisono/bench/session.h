// A run of `unisono bench`: runs its cases one after the other. Rank 0 prints each result at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/formats.h"
#include "bench/runner.h"
#include "bench/sweep.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

// A time, and the processor time that this machine and this process had used until then.
struct CpuUse {
  double at_s = 0;
  double machine_s = 0;
  double own_s = 0;
};

class Session {
 public:
  Session(Communicator& comm, const Arguments& arguments, const Console& console);

  // Returns the exit code. Only rank 0 prints, and its exit code is the result.
  int run();

 private:
  RunnerOptions runner_options(const std::vector<Case>& cases) const;
  void say(const std::string& text) const;
  // Prints a heading, a row or the footer on the screen, or adds it to the table of the main job.
  void add_to_table(const std::string& text);
  void open_table();
  void close_table();
  void print_from(std::size_t i, const std::vector<Case>& cases);
  void check_plot() const;
  void write_plot() const;
  int verdict() const;
  std::string main_job_end() const;
  double cores_of_others() const;
  bool too_slow() const;
  void note_one_rank() const;

  Communicator& comm_;
  const Arguments& arguments_;
  const Console& console_;
  bool main_job_ = false;
  bool paged_ = false;  // ends with a page; the rows go to table_, if it is open
  std::optional<std::string> table_;
  bool speaks_ = false;
  CpuUse start_;
  double others_ = 0;
  Format format_ = Format::text;
  Heading heading_;
  std::vector<Row> rows_;
};

}  // namespace unisono::cli
