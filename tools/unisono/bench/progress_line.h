// One line that rewrites itself while a benchmark works.
//
// The launcher reads what a rank writes, so that a rank sees no terminal but on its standard input,
// which rank 0 keeps. Where that is one, the line goes straight to it; elsewhere there is none.
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
