// Distribution of the model over ranks, written as one line of text:
//
//   dp=2,cp=2,tp=2 zero=3 sp vocab striped
//
// Axes, slowest first: pp (a pipeline, with a schedule), rep (replicas of sharded states, HSDP),
// dp, cp (ring or all_gather), uly (Ulysses), tp. Words: zero=0..3 (default 0), sp, vocab,
// all_gather, contiguous, striped (default zigzag). A pipeline needs the name of a schedule
// (`unisono pipeline list`), and may have m=8 (microbatches, default 8) and v=2 (stages per rank,
// if the schedule leaves the choice).
#pragma once

#include <string>
#include <unisono/parallel/context_parallel.hpp>
#include <vector>

namespace transformer {

struct Layout {
  std::string text = {};
  std::string mesh = {};  // with all axes
  int ranks = 1;
  int stage = 0;              // ZeRO stage
  std::string schedule = {};  // empty: no pipeline
  int microbatches = 8;
  int chunks = 0;
  bool sequence = false;
  bool vocabulary = false;
  bool same_bits = false;  // losses and weights have the same bits under every layout
  unisono::parallel::ContextMethod method = unisono::parallel::ContextMethod::ring;
  unisono::parallel::ContextOrder order = unisono::parallel::ContextOrder::zigzag;
};

Layout parse_layout(const std::string& text);
// Returns the layouts that `make parallel` compares with one process.
std::vector<Layout> layouts_on(int ranks);

}  // namespace transformer
