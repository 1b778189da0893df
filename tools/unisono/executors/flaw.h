// Errors in a program of another executor.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "executors/steps.h"

namespace unisono::executors {

struct Flaw {
  StepId at = {};
  std::string text = {};
};

// "GPU 0, thread block 2, step 1: ...", or the text alone.
std::string to_text(const Flaw& flaw);

// The errors that one part of a proof finds. One mistake often causes many errors, so only the
// first hundred are kept.
class Flaws {
 public:
  static constexpr std::size_t kMost = 100;

  bool is_full() const { return flaws_.size() >= kMost; }
  void add(const StepId& at, std::string text) { add({.at = at, .text = std::move(text)}); }
  void add(Flaw flaw) {
    if (!is_full()) {
      flaws_.push_back(std::move(flaw));
    }
  }
  std::vector<Flaw> take() && { return std::move(flaws_); }

 private:
  std::vector<Flaw> flaws_;
};

}  // namespace unisono::executors
