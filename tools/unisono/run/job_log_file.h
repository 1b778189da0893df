// The launcher's side of the job log (bootstrap/job_log.h), through which the launcher and the
// ranks of this host inform each other. Waiting ranks learn which ranks have ended. Ranks that see
// others end learn the first cause, so that they do not report these ends as the first cause.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "bootstrap/job_log.h"

namespace unisono::cli {

class JobLogFile {
 public:
  // If there is no memory for the file, nothing is written, and the job continues.
  JobLogFile(const std::string& job, int ranks);
  // Returns the environment entry for the ranks of this host.
  std::string environment() const;
  void write_end(int rank, const std::string& how);
  // To be called before the first rank is ended; the first reason stays. `reason` begins with
  // comm::kEndedByLauncher. comm::kEndedByLauncher. Returns the lines for ranks with their own log;
  // empty: there was already a reason.
  std::string write_reason(const std::string& reason, const std::string& advice);
  // Adds lines that a rank on another host has in its own log.
  void add_remote(std::string_view lines) { remote_ += lines; }
  // Returns the lines of all ranks.
  comm::JobLog read() const;

 private:
  void add(const std::string& lines);

  UniqueFd memory_;
  std::string remote_;
  bool has_reason_ = false;
};

// Extracts the lines of a rank's job log from its shell's stderr: see log_mark().
class RemoteLog {
 public:
  explicit RemoteLog(std::string mark) : mark_(std::move(mark)) {}
  // Returns the text to show.
  std::string take(std::string_view bytes);
  // Returns the rest of the text to show; call it at the end of the stream.
  std::string finish();
  // Returns the lines extracted since the last call.
  std::string lines();

 private:
  std::string mark_;
  std::string held_;  // may be the beginning of a mark, or of a line behind one
  std::string lines_;
};

}  // namespace unisono::cli
