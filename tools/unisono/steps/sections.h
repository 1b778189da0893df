// The sections of a step in `unisono step show`. Equal layers are printed once.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "step/calls.h"
#include "step/ranks.h"
#include "step/walk.h"

namespace unisono::cli {

class Sections {
 public:
  Sections(const step::Step& step, const Console& console);
  void print(const std::vector<std::vector<step::Call>>& calls);  // by rank

 private:
  // The calls of a stage's busiest rank for one node, in the first of its layers.
  struct Said {
    std::string what = {};
    std::size_t messages = 0;
    double bytes = 0;
    double flops = 0;
  };

  const step::Section& at(std::size_t number) const { return step_.sections[number]; }
  // Returns the first section with the same nodes.
  std::size_t first_like(std::size_t number) const;
  // Returns true if the section is printed together with the previous one.
  bool goes_on(std::size_t number) const;
  // Prints the title. Returns true if the nodes are those of an earlier section.
  bool print_title(const step::Section& section);
  Said said_of(const step::Visit& visit) const;
  // Returns the number of times that the section's stage runs it.
  int passes(const step::Section& section) const;
  void print(const step::Visit& visit, const Said& said) const;

  const step::Step& step_;
  const Console& console_;
  step::StepRanks ranks_;
  std::vector<std::vector<step::Node>> of_any_layer_;  // of each section, as the next
  std::vector<std::size_t> like_;                      // the first section that is alike
  std::vector<std::vector<std::vector<const step::Call*>>> calls_;  // by section and rank
};

}  // namespace unisono::cli
