// Why the launcher ends the ranks that are left, for these ranks to read (bootstrap/end_reason.h):
// they see each other end, and shall not take that for the first cause.
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace unisono::cli {

class EndWords {
 public:
  // Without memory for them there are no words, and all the rest goes on.
  EndWords();
  // For the environment of the ranks of this host.
  std::string environment() const;
  // To be called before the first rank is ended; the first words stay. `words` begin with
  // comm::kEndedByLauncher.
  void say(const std::string& words, const std::string& advice);

 private:
  UniqueFd memory_;
  bool said_ = false;
};

}  // namespace unisono::cli
