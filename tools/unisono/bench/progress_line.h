// One line that rewrites itself while a benchmark works.
//
// The launcher reads the output of ranks, so a rank's output is never a terminal. Rank 0 keeps the
// standard input of the launcher. If this input is a terminal, the line is written directly to the
// terminal. Otherwise there is no progress line.
#pragma once

#include <string_view>

#include "base/unique_fd.h"

namespace unisono::cli {

class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  void clear();

 private:
  void write(std::string_view text) const;

  UniqueFd terminal_;
  int width_ = 0;
  bool shown_ = false;
};

}  // namespace unisono::cli
