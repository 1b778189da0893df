// Why the launcher ends the ranks that are left, for these ranks to read (bootstrap/end_reason.h):
// they see each other end, and shall not take that for the first cause.
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace unisono::cli {

class EndReasonFile {
 public:
  // Without memory for the file nothing is written, and all the rest goes on.
  EndReasonFile();
  // For the environment of the ranks of this host.
  std::string environment() const;
  // To be called before the first rank is ended; the first reason stays. `reason` begins with
  // comm::kEndedByLauncher.
  void write(const std::string& reason, const std::string& advice);

 private:
  UniqueFd memory_;
  bool written_ = false;
};

}  // namespace unisono::cli
