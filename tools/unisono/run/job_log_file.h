// The launcher's side of what it and the ranks of this host tell each other
// (bootstrap/job_log.h): ranks that wait for each other shall hear who has ended, and those that
// see each other end shall not take that for the first cause.
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace unisono::cli {

class JobLogFile {
 public:
  // Without memory for the file nothing is written, and all the rest goes on.
  JobLogFile(const std::string& job, int ranks);
  // For the environment of the ranks of this host.
  std::string environment() const;
  void write_end(int rank, const std::string& how);
  // To be called before the first rank is ended; the first reason stays. `reason` begins with
  // comm::kEndedByLauncher.
  void write_reason(const std::string& reason, const std::string& advice);
  // The first rank that had ended while others waited for it to join; -1: none.
  int missed() const;

 private:
  void add(const std::string& lines);

  UniqueFd memory_;
  bool has_reason_ = false;
};

}  // namespace unisono::cli
